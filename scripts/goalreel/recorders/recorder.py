"""What RecordVideo of single and of vector environments share, and know of an episode."""

import gc
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from gymnasium import logger
from gymnasium.utils import RecordConstructorArgs

from goalreel.recorders.schedule import capped_cubic_video_schedule
from goalreel.recorders.video_writer import VideoOptions, VideoWriter


class Recorder(RecordConstructorArgs):
    """The arguments of Gymnasium's RecordVideo and those of VideoOptions, and how a video ends."""

    def _configure(self, arguments: dict, metadata: Mapping) -> None:
        """Take the arguments as attributes, and make the folder.

        Args:
            arguments: all of `__init__` but `env`; `video` is a dict of VideoOptions.
            metadata: the environment's.
        """
        video = arguments.pop("video")
        RecordConstructorArgs.__init__(self, **arguments, **video)
        vars(self).update(arguments)
        if self.episode_trigger is None and self.step_trigger is None:
            self.episode_trigger = capped_cubic_video_schedule
        self.video_length = self.video_length or float("inf")
        fps, folder = arguments["fps"], arguments["video_folder"]
        self.frames_per_sec = metadata.get("render_fps", 30) if fps is None else fps
        self.video_folder = os.path.abspath(folder)  # noqa: PTH100 (spelt as Gymnasium's)
        self._options = VideoOptions(self.frames_per_sec, name_prefix=self.name_prefix, **video)
        if Path(folder).is_dir():
            logger.warn(
                f"Overwriting existing videos at {self.video_folder} folder (try another "
                "`video_folder` for the `RecordVideo` wrapper if this is not desired)"
            )
        Path(folder).mkdir(parents=True, exist_ok=True)

    def _writer(self, name: str, step: int, episode: Mapping) -> VideoWriter:
        """Begin a video of this name, at a step of an episode."""
        path = Path(self.video_folder, f"{name}.mp4")
        return VideoWriter(path, self._options, episode, step, owner=self)

    def _finish(self, video: VideoWriter, episode: int) -> None:
        """Finish a video. Raises GoalreelError if ffmpeg fails; there is no file then."""
        written, path = video.written, video.finish()
        if path is None:
            logger.warn("Ignored saving a video as there were zero frames to save.")
        elif not self.disable_logger:
            print(f"{path}: {written} frames", file=sys.stderr)
        if self.gc_trigger and self.gc_trigger(episode):
            gc.collect()


def begun(episode: int, seed: int | None = None, env: int = 0) -> dict:
    """Return what is known of an episode at its beginning; see `stepped`."""
    return {"episode": episode, "env": env, "seed": seed, "return": 0.0, "length": 0} | {
        "terminated": False,
        "truncated": False,
    }


def stepped(info: dict, reward: float, terminated: bool, truncated: bool) -> None:
    """Add a step to what is known of an episode; its recording has the same dict."""
    info["return"] += float(reward)
    info["length"] += 1
    info["terminated"], info["truncated"] = bool(terminated), bool(truncated)
