"""Concatenation: from all segments to the film, without encoding anything again.

The film has one chapter per filmed episode, and its index at the front.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from goalreel.errors import GoalreelError, UnusableFileError
from goalreel.files.atomic import replacing
from goalreel.mp4.movie_box import Chapter, VideoTrack
from goalreel.mp4.reader import TICKS, read_index
from goalreel.mp4.writer import read_runs, write_mp4
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
    """Join the segments of all shards into a film.

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

    def shards() -> Iterator[tuple[Path, list[Chapter]]]:
        for segment, trajectory in zip(segments, trajectories, strict=True):
            summary = read_summary(trajectory)
            probes.setdefault(summary.probe, trajectory)
            if len(probes) > 1:
                (first, one), (second, another) = probes.items()
                raise GoalreelError(
                    f"{another} and {one} were simulated on machines whose libm round differently "
                    f"(probes {second[:8]} and {first[:8]}), so their trajectories differ; delete "
                    f"those of one machine and run snakemake again on machines that agree"
                )
            yield segment, list(_chapters(summary, cards, unit))

    return join(shards(), path, fps, title, comment)


def join(
    segments: Iterable[tuple[Path, Sequence[Chapter]]],
    path: str | os.PathLike,
    fps: int,
    title: str,
    comment: str,
) -> int:
    """Join segments, each with its chapters, into `path`; return the number of frames.

    Memory is that of the frames' sizes, 4 bytes each, and of the texts. Raises GoalreelError if the
    segments are not alike, or do not hold the frames of their chapters.
    """
    sizes, keyframes, chapters, payload, frames = [], [], [], [], 0
    first = like = None
    for segment, shown in segments:
        index, expected = read_index(segment), sum(chapter.frames for chapter in shown)
        if index.frames != expected:
            raise UnusableFileError(
                segment,
                f"it holds {index.frames} frames, the episodes of its shard with their title "
                f"cards {expected}",
            )
        if (index.durations, index.timescale) != ((TICKS,), TICKS * fps):
            raise UnusableFileError(segment, f"it was not made at a constant {fps} fps")
        coding = index.configuration, index.size
        first, like = first or segment, like or coding
        if coding != like:
            raise UnusableFileError(segment, f"its size or its coding differs from that of {first}")
        # Nothing is decoded: segments become ranges of their files.
        payload.append(read_runs(segment, index.runs()))
        sizes.append(index.sizes)
        keyframes.append(np.asarray(index.keyframes) + frames)
        chapters += shown
        frames += index.frames
    sizes = np.concatenate(sizes)  # whose parts are not needed any more
    video = VideoTrack(*like, fps, sizes, np.concatenate(keyframes))
    with replacing(path) as temporary:
        write_mp4(temporary, video, chain.from_iterable(payload), title, comment, chapters)
    return frames


def _chapters(summary: Summary, cards: int, unit: str) -> Iterator[Chapter]:
    """Yield one chapter per filmed episode of a shard."""
    for number in range(len(summary.episodes.reach)):
        row = summary.episodes.row(number)
        title = f"{unit.capitalize()} {row['reach']} · seed {row['seed']} · {row['steps']} steps"
        if unit == "episode":
            title += f" · return {row['return']:g} · {outcome(row, unit)}"
        elif not row["reached"]:
            title += " · failed"
        yield Chapter(cards + row["steps"] + 1, title)
