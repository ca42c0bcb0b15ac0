"""Concatenation: from all segments to the film, without encoding anything again.

The film has one chapter per filmed episode, its index at the front, and is checked before it
appears.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from goalreel.errors import GoalreelError, UnusableFileError
from goalreel.files.atomic import replacing
from goalreel.mp4.movie_box import FileRange, VideoTrack
from goalreel.mp4.reader import TICKS, VideoIndex, read_index, read_outline
from goalreel.mp4.text_tracks import Chapter
from goalreel.mp4.writer import write_mp4
from goalreel.rendering.captions import outcome
from goalreel.simulation.trajectories import Summary, read_summary


def concatenate(
    segments: Sequence[Path],
    trajectories: Sequence[Path],
    path: str | os.PathLike,
    fps: int,
    cards: int,
    unit: str,
    title: str,
    comment: str,
) -> int:
    """Join the segments of all shards into a film; memory is that of a shard.

    Args:
        segments: one of each shard, in order.
        trajectories: the same shards', in order.
        path: the film.
        fps: frames per second that they must have.
        cards: frames of the title card that each episode starts with.
        unit: what the run counts, "reach" or "episode", and the chapters name.
        title: the film's.
        comment: what the film keeps about its making.

    Returns:
        The number of frames.

    Raises:
        GoalreelError: they do not belong together, or make up too long a film.
    """
    probes: dict[str, Path] = {}

    def shards() -> Iterator[tuple[Path, VideoIndex]]:
        for segment, trajectory in zip(segments, trajectories, strict=True):
            index, summary = read_index(segment), read_summary(trajectory)
            frames = int((summary.episodes.steps + 1 + cards).sum())
            if index.frames != frames:
                raise UnusableFileError(
                    segment,
                    f"it holds {index.frames} frames, the episodes of its shard with their title "
                    f"cards {frames}",
                )
            probes.setdefault(summary.probe, trajectory)
            if len(probes) > 1:
                (first, one), (second, another) = probes.items()
                raise GoalreelError(
                    f"{another} and {one} were simulated on machines whose libm round differently "
                    f"(probes {second[:8]} and {first[:8]}), so their trajectories differ; delete "
                    f"those of one machine and run snakemake again on machines that agree"
                )
            yield segment, index

    summaries = (read_summary(trajectory) for trajectory in trajectories)
    return _write(path, shards(), fps, title, comment, _chapters(summaries, cards, unit))


def join(
    segments: Sequence[Path],
    path: str | os.PathLike,
    fps: int,
    title: str,
    comment: str,
    chapters: Iterable[Chapter],
) -> int:
    """Join segments into `path`; return the number of frames.

    Raises GoalreelError if they are not alike.
    """
    found = ((segment, read_index(segment)) for segment in segments)
    return _write(path, found, fps, title, comment, chapters)


def _write(
    path: str | os.PathLike,
    segments: Iterable[tuple[Path, VideoIndex]],
    fps: int,
    title: str,
    comment: str,
    chapters: Iterable[Chapter],
) -> int:
    """Join segments, which come one at a time with their indices; return the number of frames."""
    payload: list[FileRange] = []  # nothing is decoded: segments become ranges of their files
    frames = 0

    def parts() -> Iterator[VideoTrack]:
        nonlocal frames
        first = like = None
        for segment, index in segments:
            timing = index.durations, index.timescale, index.first_pts, index.reordered
            if timing != ((TICKS,), TICKS * fps, 0, False):
                raise UnusableFileError(segment, f"it was not made at a constant {fps} fps")
            first, like = first or segment, like or (index.size, index.configuration)
            if (index.size, index.configuration) != like:
                raise UnusableFileError(
                    segment, f"its size or its coding differs from that of {first}"
                )
            payload.extend(FileRange(segment, *run) for run in index.samples.runs())
            frames += index.frames
            sizes, keyframes = index.samples.sizes, index.keyframes
            yield VideoTrack(index.configuration, index.size, fps, sizes, keyframes)

    with replacing(path) as temporary:
        write_mp4(temporary, parts(), payload, title, comment, chapters)
        film = read_outline(temporary)
        found = film.frames, film.durations, film.timescale, film.first_pts
        assert found == (frames, (TICKS,), TICKS * fps, 0), f"a film of {found}; please report this"
    return frames


def _chapters(summaries: Iterable[Summary], cards: int, unit: str) -> Iterator[Chapter]:
    """Yield one chapter per filmed episode."""
    first_frame = 0
    for summary in summaries:
        for number in range(len(summary.episodes.reach)):
            row = summary.episodes.row(number)
            title = (
                f"{unit.capitalize()} {row['reach']} · seed {row['seed']} · {row['steps']} steps"
            )
            if unit == "episode":
                title += f" · return {row['return']:g} · {outcome(row, unit)}"
            elif not row["reached"]:
                title += " · failed"
            frames = cards + row["steps"] + 1
            yield Chapter(first_frame, frames, title)
            first_frame += frames
