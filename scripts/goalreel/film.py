"""Concatenation: from all segments to the film, without encoding anything again.

The film has one chapter per filmed episode, its index at the front, and is checked before it
appears. How segments are made stands in segment, what a trajectory file tells in trajectories.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from goalreel import ffmpeg
from goalreel.atomic import replacing
from goalreel.errors import GoalreelError
from goalreel.mp4 import VideoIndex, read_index
from goalreel.segment import TICKS
from goalreel.trajectories import read_summary


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
    fps: int,
    title: str,
    comment: str,
) -> int:
    """Join the segments of all shards into `path`; return the number of frames.

    segments, trajectories: one of each per shard, in order. Raises GoalreelError if they do not
    belong together or the film is not exactly their sum.
    """
    indices = _check_segments(segments, fps)
    chapters = _chapters(trajectories, segments, indices)
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
        *[
            "-protocol_whitelist",
            "file,pipe",
            "-f",
            "concat",
            "-safe",
            "0",
            "-auto_convert",
            "0",
            "-i",
            "pipe:0",
        ],
        *["-f", "ffmetadata", "-i", f"file:{metadata.resolve()}"],
        *["-map", "0:v", "-map_metadata", "1", "-map_chapters", "1", "-c", "copy"],
        # The demuxer sums durations in microseconds; counting packets cannot drift.
        *["-bsf:v", f"setts=ts=N*{TICKS}:duration={TICKS}:time_base=1/{TICKS * fps}"],
        *["-video_track_timescale", str(TICKS * fps), "-movie_timescale", str(TICKS * fps)],
        *["-flags", "+bitexact", "-fflags", "+bitexact", "-movflags", "+faststart"],
        *["-f", "mp4", "-y", f"file:{output.resolve()}"],
    ]
    ffmpeg.run(arguments, [listing.encode()], folder=segments[0].parent)


def _check_segments(segments: list[Path], fps: int) -> list[VideoIndex]:
    """Return the segments' indices; refuse what cannot be joined without harm."""
    indices = [read_index(segment) for segment in segments]
    for segment, index in zip(segments, indices, strict=True):
        if (index.durations, index.timescale, index.reordered) != ((TICKS,), TICKS * fps, False):
            raise GoalreelError(f"{segment}: not made at a constant {fps} fps; delete it")
        if index.parameter_sets != indices[0].parameter_sets:
            raise GoalreelError(
                f"{segment}: its SPS and PPS differ from those of {segments[0]}: it was encoded "
                f"with other settings or another ffmpeg; delete both and run snakemake again"
            )
        if index.comment != indices[0].comment:
            raise GoalreelError(
                f"{segment}: made by another spec than {segments[0]}; delete the wrong one"
            )
    return indices


def _chapters(
    trajectories: list[Path], segments: list[Path], indices: list[VideoIndex]
) -> Iterator[Chapter]:
    """Yield one chapter per filmed episode; refuse trajectories of unlike machines."""
    first_frame, first_probe = 0, None
    for path, segment, index in zip(trajectories, segments, indices, strict=True):
        episodes, _, probe = read_summary(path)
        first_probe = first_probe or probe
        if probe != first_probe:
            raise GoalreelError(
                f"{path} was simulated where cos() rounds otherwise than for {trajectories[0]} "
                f"(probes {probe[:8]} and {first_probe[:8]}): their libm differ, and so do their "
                f"trajectories; delete one kind and make all on like machines"
            )
        if int(episodes.steps.sum()) + len(episodes.steps) != index.frames:
            raise GoalreelError(
                f"{segment} holds {index.frames} frames, but {path} tells of "
                f"{int(episodes.steps.sum()) + len(episodes.steps)} states; delete the segment"
            )
        for reach, seed, steps, terminated in zip(
            episodes.reach.tolist(),
            episodes.seed.tolist(),
            episodes.steps.tolist(),
            episodes.terminated.tolist(),
            strict=True,
        ):
            failed = "" if terminated else " · failed"
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
