"""Concatenation: from all segments to the film, without encoding anything again.

The film has one chapter per filmed episode, its index at the front, and is checked before it
appears. How segments are made stands in segment, what a trajectory file tells in trajectories.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from goalreel import ffmpeg
from goalreel.atomic import replacing
from goalreel.errors import GoalreelError
from goalreel.mp4 import VideoIndex, read_index
from goalreel.spec import common_spec
from goalreel.trajectories import Summary, read_summary
from goalreel.video import TICKS


@dataclass(frozen=True)
class Chapter:
    """A filmed episode's place in the film, in frames, and its title."""

    first_frame: int
    frames: int
    title: str


def concatenate(
    segments: list[Path],
    trajectories: list[Path],
    path: str | os.PathLike,
    env: str,
    fps: int,
    title: str,
    comment: str,
) -> int:
    """Join the segments of all shards into `path`; return the number of frames.

    segments, trajectories: one of each per shard, in order, the segments in one folder. Raises
    GoalreelError if they do not belong together or the film is not exactly their sum.
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
    chapters = _chapters(summaries)
    frames = sum(index.frames for index in indices)
    with replacing(path) as temporary:
        metadata = temporary.with_suffix(".ffmeta")
        _write_metadata(metadata, title, comment, chapters, fps)
        _join(segments, metadata, temporary, fps)
        _check_film(read_index(temporary), frames, indices[0], fps)
    return frames


def _join(segments: list[Path], metadata: Path, output: Path, fps: int) -> None:
    # Names without a folder need no escape for whatever the folder is called: ffmpeg runs there.
    listing = "ffconcat version 1.0\n" + "".join(f"file file:{s.name}\n" for s in segments)
    arguments = [
        *["-protocol_whitelist", "file,pipe", "-f", "concat", "-safe", "0"],
        *["-auto_convert", "0", "-i", "pipe:0"],
        *["-f", "ffmetadata", "-i", f"file:{metadata.resolve()}"],
        *["-map", "0:v", "-map_metadata", "1", "-map_chapters", "1", "-c", "copy"],
        # The demuxer sums durations in microseconds; counting packets cannot drift.
        *["-bsf:v", f"setts=ts=N*{TICKS}:duration={TICKS}:time_base=1/{TICKS * fps}"],
        *["-video_track_timescale", str(TICKS * fps), "-movie_timescale", str(TICKS * fps)],
        *["-flags", "+bitexact", "-fflags", "+bitexact", "-movflags", "+faststart"],
        *["-f", "mp4", "-y", f"file:{output.resolve()}"],
    ]
    ffmpeg.run(arguments, [listing.encode()], folder=segments[0].parent)


def _check_segments(indices: Mapping[Path, VideoIndex], fps: int) -> None:
    """Refuse segments that cannot be joined without harm."""
    first_path, first = next(iter(indices.items()))
    for path, index in indices.items():
        if (index.durations, index.timescale, index.reordered) != ((TICKS,), TICKS * fps, False):
            raise GoalreelError(f"{path}: not made at a constant {fps} fps; delete it")
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


def _chapters(summaries: Iterable[Summary]) -> Iterator[Chapter]:
    """Yield one chapter per filmed episode."""
    first_frame = 0
    for summary in summaries:
        rows = summary.episodes
        columns = (rows.reach, rows.seed, rows.steps, rows.reached)
        for reach, seed, steps, reached in zip(*(c.tolist() for c in columns), strict=True):
            failed = "" if reached else " · failed"
            title = f"Reach {reach} · seed {seed} · {steps} steps{failed}"
            yield Chapter(first_frame, steps + 1, title)
            first_frame += steps + 1


def _write_metadata(path: Path, title: str, comment: str, chapters, fps: int) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write(f";FFMETADATA1\ntitle={_escape(title)}\ncomment={_escape(comment)}\n")
        for chapter in chapters:
            end = chapter.first_frame + chapter.frames
            stream.write(
                f"[CHAPTER]\nTIMEBASE=1/{fps}\nSTART={chapter.first_frame}\nEND={end}\n"
                f"title={_escape(chapter.title)}\n"
            )


def _escape(text: str) -> str:
    """Escape a value of an ffmetadata file (ffmpeg-formats, "Metadata")."""
    return "".join(f"\\{c}" if c in "=;#\\\n" else c for c in text)


def _check_film(film: VideoIndex, frames: int, segment: VideoIndex, fps: int) -> None:
    found = (film.frames, film.durations, film.timescale, film.first_pts, film.parameter_sets)
    wanted = (frames, (TICKS,), TICKS * fps, 0, segment.parameter_sets)
    if found != wanted or film.reordered:
        raise GoalreelError(
            f"the film came out wrong: {film.frames} frames of {frames}, lasting "
            f"{film.durations} of 1/{film.timescale} s from {film.first_pts} on, with "
            f"{len(film.parameter_sets)} sample descriptions"
        )
