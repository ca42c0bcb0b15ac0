"""The base class of recorders that replace a list of frames by a VideoWriter.

The replaced wrapper decides when to record and appends each frame to `recorded_frames`.
"""

import contextlib
import gc
import sys
from collections.abc import Mapping
from pathlib import Path

from gymnasium import logger
from gymnasium.error import DependencyNotInstalled
from gymnasium.utils import RecordConstructorArgs

from goalreel.recorders.schedule import capped_cubic_video_schedule
from goalreel.recorders.video_writer import VideoOptions, VideoWriter


class Recorder(RecordConstructorArgs):
    """Initialize a wrapper of Gymnasium, and write its videos with VideoWriter."""

    def _configure(self, wrapper: type, given: Mapping, own: tuple[str, ...] = ()) -> None:
        """Initialize a class of Gymnasium with the local names of `__init__`, except `own`.

        `given` has `video`, a dict of VideoOptions.
        """
        arguments = {k: v for k, v in given.items() if k not in ("self", "env", "__class__")}
        video = arguments.pop("video")
        RecordConstructorArgs.__init__(self, **arguments, **video)  # later calls are ignored
        if given["episode_trigger"] is None and given["step_trigger"] is None:
            arguments["episode_trigger"] = capped_cubic_video_schedule
        arguments = {k: v for k, v in arguments.items() if k not in own}
        with contextlib.suppress(DependencyNotInstalled):  # moviepy
            wrapper.__init__(self, given["env"], **arguments)
        self._options = VideoOptions(self.frames_per_sec, name_prefix=self.name_prefix, **video)

    def _writer(self, name: str, episode: Mapping) -> VideoWriter:
        """Start a video in an episode."""
        path = Path(self.video_folder, f"{name}.mp4")
        return VideoWriter(path, self._options, episode, self.step_id, owner=self)

    def _finish(self, video: VideoWriter, episode: int) -> None:
        """Finish a video. Raises GoalreelError if ffmpeg fails. Then there is no file."""
        frames, path = len(video), video.finish()
        if path is None:
            logger.warn("Ignored saving a video as there were zero frames to save.")
        elif not self.disable_logger:
            print(f"{path}: {frames} frames", file=sys.stderr)
        if self.gc_trigger and self.gc_trigger(episode):
            gc.collect()


def new_info(episode: int, seed: int | None = None, env: int = 0) -> dict:
    """Return the info of an episode at its start; `add_step` updates it."""
    info = {"episode": episode, "env": env, "seed": seed, "return": 0.0, "length": 0}
    return info | {"terminated": False, "truncated": False}


def add_step(info: dict, reward: float, terminated: bool, truncated: bool) -> None:
    """Add a step to the info of an episode, which its recording shares."""
    info["return"] += float(reward)
    info["length"] += 1
    info["terminated"], info["truncated"] = bool(terminated), bool(truncated)
