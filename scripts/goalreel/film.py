"""Concatenation: from all segments to the film, without encoding anything again.

The film has one chapter per filmed episode, its index at the front, and is checked before it
appears. How segments are made stands in segment, what a trajectory file tells in trajectories, how
the file is laid out in mp4_join and mp4_writer.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from goalreel.atomic import replacing
from goalreel.errors import GoalreelError
from goalreel.mp4 import TICKS, VideoIndex, read_index
from goalreel.mp4_join import joined
from goalreel.mp4_movie import Chapter
from goalreel.mp4_writer import write_mp4
from goalreel.spec import common_spec
from goalreel.trajectories import Summary, read_summary


def concatenate(
    segments: list[Path],
    trajectories: list[Path],
    path: str | os.PathLike,
    env: str,
    fps: int,
    cards: int,
    title: str,
    comment: str,
) -> int:
    """Join the segments of all shards into `path`; return the number of frames.

    segments, trajectories: one of each per shard, in order, the segments in one folder. cards:
    frames of the title card that each episode starts with. Raises GoalreelError if they do not
    belong together or the film is not exactly their sum.
    """
    if {segment.parent for segment in segments} != {segments[0].parent}:
        raise GoalreelError(f"the segments stand in other folders than {segments[0].parent}")
    indices = [read_index(segment) for segment in segments]
    _check_segments(dict(zip(segments, indices, strict=True)), fps)
    summaries = [read_summary(shard) for shard in trajectories]
    _check_trajectories(dict(zip(trajectories, summaries, strict=True)), env)
    for segment, index, summary in zip(segments, indices, summaries, strict=True):
        if _source(index) != summary.digest:
            raise GoalreelError(
                f"{segment}: does not show the trajectories of its shard; "
                f"delete it and its frame cache and run snakemake again"
            )
    made = dict(zip(segments, indices, strict=True))
    return join(made, path, fps, title, comment, list(_chapters(summaries, cards)))


def join(
    segments: Mapping[Path, VideoIndex],
    path: str | os.PathLike,
    fps: int,
    title: str,
    comment: str,
    chapters: Sequence[Chapter],
) -> int:
    """Join segments of one folder, known to be made alike, into `path`; return the frames' number.

    Raises GoalreelError if the chapters, or what comes out, are not exactly their sum.
    """
    frames, told = sum(i.frames for i in segments.values()), sum(c.frames for c in chapters)
    if frames != told:
        raise GoalreelError(
            f"the segments hold {frames} frames, the episodes with their title cards {told}; "
            f"delete the segments and run snakemake again"
        )
    video, payload = joined(segments, fps)
    with replacing(path) as temporary:
        write_mp4(temporary, video, payload, title, comment, chapters)
        _check_film(read_index(temporary), segments, fps)
    return frames


def _check_segments(indices: Mapping[Path, VideoIndex], fps: int) -> None:
    """Refuse segments that cannot be joined without harm."""
    first_path, first = next(iter(indices.items()))
    for path, index in indices.items():
        if (index.durations, index.timescale, index.reordered) != ((TICKS,), TICKS * fps, False):
            raise GoalreelError(f"{path}: not made at a constant {fps} fps; delete it")
        if (index.codec, index.size) != (first.codec, first.size):
            raise GoalreelError(
                f"{path}: {index.codec} of {index.size[0]}x{index.size[1]} pixels, {first_path} "
                f"{first.codec} of {first.size[0]}x{first.size[1]}; delete the wrong one and run "
                f"snakemake again"
            )
        if index.parameter_sets != first.parameter_sets:
            raise GoalreelError(
                f"{path}: its SPS and PPS differ from those of {first_path}: it was encoded with "
                f"other settings or another ffmpeg; delete the wrong one and run snakemake again"
            )
    common_spec({path: index.comment for path, index in indices.items()})


def _check_trajectories(summaries: Mapping[Path, Summary], env: str) -> None:
    """Refuse trajectories of another environment, unlike options or unlike machines."""
    made = common_spec({path: summary.spec for path, summary in summaries.items()})
    if made["config"]["env"] != env:
        raise GoalreelError(f"the trajectories are of {made['config']['env']}, not of {env}")
    first_path, first = next(iter(summaries.items()))
    for path, summary in summaries.items():
        if summary.probe != first.probe:
            raise GoalreelError(
                f"{path} was simulated where results differ in a last bit from those of "
                f"{first_path}'s machine (probes {summary.probe[:8]} and {first.probe[:8]}): their "
                f"libm differ, and so do their trajectories; delete one kind and make all on like "
                f"machines"
            )


def _source(index: VideoIndex) -> str:
    """Return the digest of the trajectories that a segment shows."""
    return json.loads(index.comment).get("source", "")


def _chapters(summaries: Iterable[Summary], cards: int) -> Iterator[Chapter]:
    """Yield one chapter per filmed episode."""
    first_frame = 0
    for summary in summaries:
        rows = summary.episodes
        columns = (rows.reach, rows.seed, rows.steps, rows.reached)
        for reach, seed, steps, reached in zip(*(c.tolist() for c in columns), strict=True):
            failed = "" if reached else " · failed"
            title = f"Reach {reach} · seed {seed} · {steps} steps{failed}"
            yield Chapter(first_frame, cards + steps + 1, title)
            first_frame += cards + steps + 1


def _check_film(film: VideoIndex, segments: Mapping[Path, VideoIndex], fps: int) -> None:
    segment, frames = next(iter(segments.values())), sum(i.frames for i in segments.values())
    found = (film.frames, film.durations, film.timescale, film.first_pts, film.parameter_sets)
    wanted = (frames, (TICKS,), TICKS * fps, 0, segment.parameter_sets)
    payload = sum(index.payload for index in segments.values())
    if found != wanted or film.reordered or film.payload != payload:
        raise GoalreelError(
            f"the film came out wrong: {film.frames} frames of {frames}, lasting "
            f"{film.durations} of 1/{film.timescale} s from {film.first_pts} on, with "
            f"{len(film.parameter_sets)} sample descriptions and {film.payload} bytes of {payload}"
        )
