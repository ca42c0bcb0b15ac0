"""Concatenation: from all segments to the film, without encoding anything again.

The film has one chapter per filmed episode, its index at the front, and is checked before it
appears.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from goalreel.errors import GoalreelError
from goalreel.files.atomic import replacing
from goalreel.mp4.joined_track import Joined
from goalreel.mp4.reader import MOST_FRAMES, TICKS, Outline, VideoIndex, read_index, read_outline
from goalreel.mp4.text_tracks import Chapter
from goalreel.mp4.writer import write_mp4
from goalreel.pictures.captions import outcome
from goalreel.provenance.spec import Spec, check_common, parse_spec
from goalreel.simulation.trajectories import Summary, read_summary


def concatenate(
    segments: Sequence[Path],
    trajectories: Sequence[Path],
    path: str | os.PathLike,
    env: str,
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
        env: the environment that they must be of.
        fps: frames per second that they must have.
        cards: frames of the title card that each episode starts with.
        unit: what the run counts, "reach" or "episode", and the chapters name.
        title: the film's.
        comment: what the film keeps about its making.

    Returns:
        The number of frames.

    Raises:
        GoalreelError: they do not belong together, or the film is not exactly their sum.
    """
    first, frames = None, 0
    for segment, trajectory in zip(segments, trajectories, strict=True):
        shard = _Shard(segment, read_index(segment), trajectory, read_summary(trajectory))
        first = shard if first is None else first
        _check_segment(shard, first, fps)
        _check_trajectories(shard, first, env)
        _check_source(shard, cards)
        frames += shard.index.frames
        if frames > MOST_FRAMES:
            raise GoalreelError(
                f"one film holds up to {MOST_FRAMES:,} frames, and the shards up to {segment} "
                f"have {frames:,}. Make several films: set reaches, seed and results of each"
            )
    summaries = (read_summary(trajectory) for trajectory in trajectories)
    return join(segments, path, fps, title, comment, _chapters(summaries, cards, unit))


def join(
    segments: Sequence[Path],
    path: str | os.PathLike,
    fps: int,
    title: str,
    comment: str,
    chapters: Iterable[Chapter],
) -> int:
    """Join segments, known to be made alike, into `path`; return the number of frames.

    Raises GoalreelError if the chapters, or what comes out, are not exactly their sum.
    """
    if any(Path(segment).resolve() == Path(path).resolve() for segment in segments):
        raise GoalreelError(f"{path}: it is one of the segments; choose another file for the film")
    with replacing(path) as temporary:
        joined = Joined(segments, fps, temporary.parent)
        write_mp4(temporary, joined.parts(), joined.payload(), title, comment, chapters)
        _check_film(read_outline(temporary), joined, fps)
    return joined.frames


@dataclass(frozen=True)
class _Shard:
    segment: Path
    index: VideoIndex
    trajectory: Path
    summary: Summary


def _check_segment(shard: _Shard, first: _Shard, fps: int) -> None:
    """Refuse a segment that cannot be joined to the first without harm."""
    path, index, like = shard.segment, shard.index, first.index
    if (index.durations, index.timescale, index.reordered) != ((TICKS,), TICKS * fps, False):
        raise GoalreelError(f"{path}: not made at a constant {fps} fps; delete it")
    if index.size != like.size:
        raise GoalreelError(
            f"{path}: {index.size[0]}x{index.size[1]} pixels, {first.segment} "
            f"{like.size[0]}x{like.size[1]}; delete the wrong one and run "
            f"snakemake again"
        )
    if index.parameter_sets != like.parameter_sets:
        raise GoalreelError(
            f"{path}: its SPS and PPS differ from those of {first.segment}: it was encoded with "
            f"other settings or another ffmpeg; delete the wrong one and run snakemake again"
        )
    check_common({first.segment: _spec(first), path: _spec(shard)})


def _check_trajectories(shard: _Shard, first: _Shard, env: str) -> None:
    """Refuse trajectories of another environment, unlike options or unlike machines."""
    path, summary, like = shard.trajectory, shard.summary, first.summary
    check_common({first.trajectory: like.spec, path: summary.spec})
    if like.spec.config["env"] != env:
        raise GoalreelError(f"the trajectories are of {like.spec.config['env']}, not of {env}")
    if summary.probe != like.probe:
        raise GoalreelError(
            f"{path} and {first.trajectory} were simulated on machines whose libm round "
            f"differently (probes {summary.probe[:8]} and {like.probe[:8]}), so their trajectories "
            f"differ; delete those of one machine and run snakemake again on machines that agree"
        )


def _check_source(shard: _Shard, cards: int) -> None:
    """Refuse a segment that shows other trajectories than its shard's."""
    if _spec(shard).source != shard.summary.digest:
        raise GoalreelError(
            f"{shard.segment}: does not show the trajectories of its shard; "
            f"delete it and its frame cache and run snakemake again"
        )
    expected = int((shard.summary.episodes.steps + 1 + cards).sum())
    if shard.index.frames != expected:
        raise GoalreelError(
            f"{shard.segment}: holds {shard.index.frames} frames, the episodes of its shard with "
            f"their title cards {expected}; delete it and run snakemake again"
        )


def _spec(shard: _Shard) -> Spec:
    return parse_spec(shard.index.comment, shard.segment)


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


def _check_film(film: Outline, joined: Joined, fps: int) -> None:
    actual = (film.frames, film.durations, film.timescale, film.first_pts, film.parameter_sets)
    expected = (joined.frames, (TICKS,), TICKS * fps, 0, joined.parameter_sets)
    if actual != expected or film.reordered or film.payload != joined.payload_bytes:
        raise GoalreelError(
            f"the film is wrong: {film.frames} frames of {joined.frames}, lasting "
            f"{film.durations} of 1/{film.timescale} s from {film.first_pts} on, with "
            f"{len(film.parameter_sets)} sample descriptions and {film.payload} bytes of "
            f"{joined.payload_bytes}"
        )
