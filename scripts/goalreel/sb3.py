"""VecVideoRecorder: Stable-Baselines3's wrapper, but frames are encoded when rendered."""

import contextlib
from collections.abc import Callable
from pathlib import Path

from gymnasium.error import DependencyNotInstalled
from stable_baselines3.common import vec_env

from goalreel.recorders.video_writer import OnVideo, VideoOptions, VideoWriter


class VecVideoRecorder(vec_env.VecVideoRecorder):
    """Record videos of all environments in a grid, like Stable-Baselines3's VecVideoRecorder.

    Frames go to the encoder when they are rendered, so that memory stays flat. `close` finishes the
    last video. Otherwise it is finished when the wrapper is garbage collected or Python ends.

    Examples:
        >>> envs = make_vec_env("CartPole-v1", 4)
        >>> envs = goalreel.sb3.VecVideoRecorder(envs, "videos", lambda step: step % 10_000 == 0)
    """

    def __init__(
        self,
        venv: vec_env.VecEnv,
        video_folder: str,
        record_video_trigger: Callable[[int], bool],
        video_length: int = 200,
        name_prefix: str = "rl-video",
        *,
        qp: int = 23,
        preset: str = "veryfast",
        on_video: OnVideo | None = None,
    ) -> None:
        """Wrap a vector environment. Recording starts when the trigger returns True.

        Args:
            venv: the vector environment, with the render mode rgb_array.
            video_folder: the folder of the videos, which is created if it is missing.
            record_video_trigger: takes the number of steps so far and returns whether to record.
            video_length: the number of steps in a video, which has one frame more.
            name_prefix: the prefix of file names, {name_prefix}-step-{first}-to-step-{last}.mp4.
            qp: x264's quantizer, 0 to 51. 0 is lossless.
            preset: the x264 preset.
            on_video: called with the path, the video's number and its info when a file is complete.
                The info has that number as `episode`, the first `step`, and `frames`.

        Raises:
            AssertionError: the render mode does not return frames.
            GoalreelError: an argument is not allowed.
        """
        with contextlib.suppress(DependencyNotInstalled):  # moviepy
            super().__init__(venv, video_folder, record_video_trigger, video_length, name_prefix)
        self._options = VideoOptions(self.frames_per_sec, qp, preset, on_video=on_video)
        self._videos = -1

    def _start_recording(self) -> None:
        super()._start_recording()
        self._videos += 1
        video = Path(self.video_path), self._options, {"episode": self._videos}, self.step_id
        self.recorded_frames = VideoWriter(*video, owner=self)

    def _stop_recording(self) -> None:
        video, self.recorded_frames, self.recording = self.recorded_frames, [], False
        video.finish()

    def __del__(self) -> None:
        """Suppress the warning. VideoWriter finishes the video, see its `owner`."""
