"""Clips: videos of single episodes, and of snippets that begin at chosen steps.

`choose_clips` selects them and `write_clips` encodes them, without title cards. Names and lengths
are those of Gymnasium's save_video. Episodes are all attempts of the run, by reach and attempt.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from goalreel.encoding.x264 import encode_video
from goalreel.provenance.spec import Spec
from goalreel.simulation.trajectories import Attempts
from goalreel.views.attempt_frames import AttemptFrames, RunAttempts
from goalreel.views.triggers import select_episodes, select_steps

# The columns that identify a clip's episode, by the unit of the run.
_SOURCE = {"reach": ("reach", "attempt", "seed"), "episode": ("seed",)}


@dataclass(frozen=True)
class Clip:
    """A video to make."""

    name: str  # of the file, without suffix
    episode: int  # its index among all attempts
    start: int  # its first frame in the episode, where 0 is the reset state
    length: int | None  # the most frames, None for all


def choose_clips(clips: Mapping, attempts: Attempts) -> list[Clip]:
    """Return the clips that the section `clips` selects from all attempts of the run."""
    prefix, length = clips["name_prefix"], clips["video_length"]
    episodes = select_episodes(clips["episode_trigger"], attempts)
    chosen = [Clip(f"{prefix}-episode-{i}", i, 0, length) for i in episodes.tolist()]
    ends = np.cumsum(attempts.steps)
    for step in select_steps(clips["step_trigger"], int(ends[-1])).tolist():
        episode = int(np.searchsorted(ends, step, "right"))
        # The frame after the step, since the first frame is that of the reset.
        start = step - int(ends[episode] - attempts.steps[episode]) + 1
        chosen.append(Clip(f"{prefix}-step-{step}", episode, start, length))
    return chosen


def write_clips(
    folder: Path, chosen: Sequence[Clip], attempts: RunAttempts, spec: Spec, threads: int
) -> None:
    """Write the clips to a folder, and clips.csv with a row for each.

    Each clip stores the spec, with its place in the run. `threads` clips are encoded at the same
    time, which changes no video.
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
            size, planes = attempt.yuv.size, attempt.yuv.frames(frames)
            written = encode_video(path, planes, size, fps, encoder, comment)
            return path.name, clip.episode, *source.values(), clip.start, written

        for shard in attempts.frames_of(by_episode):
            pairs = [(clip, attempt) for attempt in shard for clip in by_episode[attempt.episode]]
            rows += pool.map(encode_clip, *zip(*pairs, strict=True))
    table = pd.DataFrame(rows, columns=["file", "episode", *names, "start", "frames"])
    table = table.sort_values("episode", kind="stable")
    table.to_csv(folder / "clips.csv", index=False, lineterminator="\n")
