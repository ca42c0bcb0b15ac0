"""Clips: videos of single episodes and of snippets that begin at chosen steps.

Names and lengths are those of Gymnasium's save_video, whose episodes here are all attempts of the
run, by reach and attempt. They have no title cards.
"""

import csv
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from goalreel.encoding.x264 import encode_video
from goalreel.provenance.spec import Spec
from goalreel.simulation.trajectories import Attempts
from goalreel.views.attempt_frames import AttemptFrames, RunAttempts
from goalreel.views.triggers import select_episodes, select_steps

# Of a clip's episode, by what the run counts: episodes are numbered as clips count them.
_SOURCE = {"reach": ("reach", "attempt", "seed"), "episode": ("seed",)}


@dataclass(frozen=True)
class Clip:
    """A video to make."""

    name: str  # of its file, without suffix
    episode: int  # its number among all attempts
    start: int  # its first frame; the episode's frame 0 shows the reset state
    length: int | None  # its frames, at most


def choose_clips(clips: Mapping, attempts: Attempts) -> list[Clip]:
    """Return what the options select of the attempts of a run.

    clips: episode_trigger, step_trigger, video_length and name_prefix.
    """
    prefix, length = clips["name_prefix"], clips["video_length"]
    episodes = select_episodes(clips["episode_trigger"], attempts)
    chosen = [Clip(f"{prefix}-episode-{i}", i, 0, length) for i in episodes.tolist()]
    ends = np.cumsum(attempts.steps)
    for step in select_steps(clips["step_trigger"], int(ends[-1])).tolist():
        episode = int(np.searchsorted(ends, step, "right"))
        # The frame after the step; the reset's frame belongs to no step.
        start = step - int(ends[episode] - attempts.steps[episode]) + 1
        chosen.append(Clip(f"{prefix}-step-{step}", episode, start, length))
    return chosen


def write_clips(
    folder: Path, chosen: Sequence[Clip], attempts: RunAttempts, spec: Spec, threads: int
) -> None:
    """Write the clips and clips.csv, a row for each, into a folder.

    Args:
        folder: an existing one.
        chosen: the clips.
        attempts: those of the run.
        spec: with film.fps and view_encoder; each clip keeps it, with its place in the run.
        threads: videos that are encoded at the same time, which changes none of them.
    """
    fps, encoder = spec.config["film.fps"], spec.config["view_encoder"]
    names, by_episode = _SOURCE[spec.config["unit"]], dict[int, list[Clip]]()
    for clip in chosen:
        by_episode.setdefault(clip.episode, []).append(clip)
    rows = []
    with ThreadPoolExecutor(threads) as pool:

        def encode_clip(clip: Clip, attempt: AttemptFrames) -> tuple:
            source = {name: attempt.row[name] for name in names}
            comment = spec.extended(clip={**source, "start": clip.start}).text
            path, frames = folder / f"{clip.name}.mp4", attempt.frames[clip.start :][: clip.length]
            size, planes = attempt.shown.size, attempt.shown.frames(frames)
            written = encode_video(path, planes, size, fps, encoder, comment)
            return path.name, clip.episode, *source.values(), clip.start, written

        for shard in attempts.frames_of(by_episode):
            pairs = [(clip, attempt) for attempt in shard for clip in by_episode[attempt.episode]]
            rows += pool.map(encode_clip, *zip(*pairs, strict=True))
    rows.sort(key=lambda row: row[1])  # by episode
    with (folder / "clips.csv").open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(("file", "episode", *names, "start", "frames"))
        table.writerows(rows)
