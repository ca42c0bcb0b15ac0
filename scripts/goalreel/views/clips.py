"""Clips: videos of single episodes and of snippets that begin at chosen steps.

Names and lengths are those of Gymnasium's save_video, whose episodes here are all attempts of the
run, by reach and attempt. Which are chosen is told by triggers, where their frames come from by
footage, what is laid over them by overlay (there are no cards).
"""

import csv
import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from goalreel.encoding.x264 import encode_video
from goalreel.provenance.spec import canonical
from goalreel.simulation.trajectories import Attempts
from goalreel.views.attempt_frames import Footage, Shot
from goalreel.views.triggers import chosen_episodes, chosen_steps

COLUMNS = ("file", "episode", "reach", "attempt", "seed", "start", "frames")


@dataclass(frozen=True)
class Clip:
    """A video to make.

    name: its file's, without suffix; episode: its number among all attempts; start, stop: its
    frames in the episode, whose frame 0 shows the reset state
    """

    name: str
    episode: int
    start: int
    stop: int


def choose_clips(clips: Mapping, attempts: Attempts, reached: np.ndarray) -> list[Clip]:
    """Return what the options select.

    clips: episode_trigger, step_trigger, video_length and name_prefix. attempts: of the whole run.
    """
    prefix, length = clips["name_prefix"], clips["video_length"]
    frames = attempts.steps + 1
    episodes = chosen_episodes(clips["episode_trigger"], attempts.steps, attempts.return_, reached)
    chosen = [
        Clip(f"{prefix}-episode-{i}", i, 0, _stop(0, length, int(frames[i])))
        for i in episodes.tolist()
    ]
    ends = np.cumsum(attempts.steps)
    for step in chosen_steps(clips["step_trigger"], int(ends[-1])).tolist():
        episode = int(np.searchsorted(ends, step, "right"))
        # The frame after the step; the reset's frame belongs to no step.
        start = step - int(ends[episode] - attempts.steps[episode]) + 1
        stop = _stop(start, length, int(frames[episode]))
        chosen.append(Clip(f"{prefix}-step-{step}", episode, start, stop))
    return chosen


def _stop(start: int, length: int | None, frames: int) -> int:
    return frames if length is None else min(start + length, frames)


def write_clips(
    folder: Path,
    chosen: Iterable[Clip],
    footage: Footage,
    fps: int,
    encode: Mapping,
    spec: str,
    threads: int,
) -> None:
    """Write the clips and clips.csv, a row for each, into a folder.

    threads: videos that are encoded at the same time, which changes none of them. Raises
    GoalreelError as footage and video do.
    """
    by_episode: dict[int, list[Clip]] = {}
    for clip in chosen:
        by_episode.setdefault(clip.episode, []).append(clip)
    rows = []
    with ThreadPoolExecutor(threads) as pool:

        def encode_clip(clip: Clip, shot: Shot) -> tuple:
            about = {name: shot.row[name] for name in ("reach", "attempt", "seed")}
            comment = canonical({**json.loads(spec), "clip": {**about, "start": clip.start}})
            path = folder / f"{clip.name}.mp4"
            frames = shot.frames(clip.start, clip.stop)
            written = encode_video(path, frames, shot.size, fps, encode, comment)
            return path.name, clip.episode, *about.values(), clip.start, written

        for shots in footage.shots(list(by_episode)):
            pairs = [(clip, shot) for shot in shots for clip in by_episode[shot.episode]]
            rows += pool.map(encode_clip, *zip(*pairs, strict=True))
    with (folder / "clips.csv").open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(COLUMNS)
        table.writerows(rows)
