"""What the recorders share: the wrapper that each replaces decides what is recorded, and when.

It appends each frame to `recorded_frames`. That is a VideoWriter here, in place of a list.
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


def without_moviepy() -> contextlib.AbstractContextManager:
    """Return the context in which a wrapper is initialized: it asks for moviepy last of all."""
    return contextlib.suppress(DependencyNotInstalled)


class Recorder(RecordConstructorArgs):
    """The arguments of Gymnasium's RecordVideo and those of VideoOptions, and how a video ends."""

    def _configure(self, wrapper: type, given: Mapping, own: tuple[str, ...] = ()) -> None:
        """Initialize the wrapper of Gymnasium's.

        Args:
            wrapper: its class.
            given: the local names of `__init__`; `video` is a dict of VideoOptions.
            own: which of them the wrapper does not know.
        """
        arguments = {k: v for k, v in given.items() if k not in ("self", "env", "__class__")}
        video = arguments.pop("video")
        RecordConstructorArgs.__init__(self, **arguments, **video)  # the first call counts
        if given["episode_trigger"] is None and given["step_trigger"] is None:
            arguments["episode_trigger"] = capped_cubic_video_schedule
        with without_moviepy():
            wrapper.__init__(
                self, given["env"], **{k: v for k, v in arguments.items() if k not in own}
            )
        self._options = VideoOptions(self.frames_per_sec, name_prefix=self.name_prefix, **video)

    def _writer(self, name: str, episode: Mapping) -> VideoWriter:
        """Begin a video of this name in an episode."""
        path = Path(self.video_folder, f"{name}.mp4")
        return VideoWriter(path, self._options, episode, self.step_id, owner=self)

    def _finish(self, video: VideoWriter, episode: int) -> None:
        """Finish a video. Raises GoalreelError if ffmpeg fails; there is no file then."""
        frames, path = len(video), video.finish()
        if path is None:
            logger.warn("Ignored saving a video as there were zero frames to save.")
        elif not self.disable_logger:
            print(f"{path}: {frames} frames", file=sys.stderr)
        if self.gc_trigger and self.gc_trigger(episode):
            gc.collect()


def new_info(episode: int, seed: int | None = None, env: int = 0) -> dict:
    """Return what is known of an episode at its beginning; see `stepped`."""
    return {"episode": episode, "env": env, "seed": seed, "return": 0.0, "length": 0} | {
        "terminated": False,
        "truncated": False,
    }


def add_step(info: dict, reward: float, terminated: bool, truncated: bool) -> None:
    """Add a step to what is known of an episode; its recording has the same dict."""
    info["return"] += float(reward)
    info["length"] += 1
    info["terminated"], info["truncated"] = bool(terminated), bool(truncated)
