"""Join all segments into the film without encoding again, with a chapter per filmed episode."""

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
    """Join the segments of all shards, in order, into a film and return the number of frames.

    `cards` is the number of frames of the title card before each episode. `unit`, "reach" or
    "episode", begins each chapter title. Raises GoalreelError if the segments do not belong
    together, or if the film is too long.
    """
    probes: dict[str, Path] = {}

    def shards() -> Iterator[tuple[Path, list[Chapter]]]:
        for segment, trajectory in zip(segments, trajectories, strict=True):
            summary = read_summary(trajectory)
            probes.setdefault(summary.probe, trajectory)
            if len(probes) > 1:
                (first_probe, first), (probe, second) = probes.items()
                raise GoalreelError(
                    f"{second}: Simulated with a libm that rounds differently. Delete the shards "
                    f"of one kind of machine.\n  {first}: libm checksum "
                    f"{first_probe[:8]}\n  {second}: libm checksum {probe[:8]}"
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
    """Join segments, each with its chapters, into `path` and return the number of frames.

    Memory use is 4 bytes per frame plus the texts. Raises GoalreelError if the segments differ in
    size, frame rate or parameter sets, or do not match their chapters.
    """
    sizes, keyframes, chapters, payload, frames = [], [], [], [], 0
    first = like = None
    for segment, shown in segments:
        index, expected = read_index(segment), sum(chapter.frames for chapter in shown)
        if index.frames != expected:
            problem = f"it has {index.frames} frames, but its episodes and title cards {expected}"
            raise UnusableFileError(segment, problem)
        if (index.durations, index.timescale) != ((TICKS,), TICKS * fps):
            raise UnusableFileError(segment, f"it does not have a constant {fps} fps")
        coding = index.configuration, index.size
        first, like = first or segment, like or coding
        if coding != like:
            raise UnusableFileError(segment, f"its size or coding differs from {first}")
        # The samples are copied as byte ranges of the segment files.
        payload.append(read_runs(segment, index.runs()))
        sizes.append(index.sizes)
        keyframes.append(np.asarray(index.keyframes) + frames)
        chapters += shown
        frames += index.frames
    sizes = np.concatenate(sizes)  # frees the parts
    video = VideoTrack(*like, fps, sizes, np.concatenate(keyframes))
    with replacing(path) as temporary:
        write_mp4(temporary, video, chain.from_iterable(payload), title, comment, chapters)
    return frames


def _chapters(summary: Summary, cards: int, unit: str) -> Iterator[Chapter]:
    """Yield the chapters of a shard, one per filmed episode."""
    for number in range(len(summary.episodes.reach)):
        row = summary.episodes.row(number)
        title = f"{unit.capitalize()} {row['reach']} · seed {row['seed']} · {row['steps']} steps"
        if unit == "episode":
            title += f" · return {row['return']:g} · {outcome(row, unit)}"
        elif not row["reached"]:
            title += " · failed"
        yield Chapter(cards + row["steps"] + 1, title)
