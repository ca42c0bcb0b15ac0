"""VecVideoRecorder: Stable-Baselines3's wrapper of that name, with frames encoded as they come.

Importing this module imports stable_baselines3.
"""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from gymnasium import logger
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv, VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from goalreel.errors import GoalreelError
from goalreel.recorders.video_writer import OnVideo, VideoOptions, VideoWriter


class VecVideoRecorder(VecEnvWrapper):
    """Record videos of all environments side by side, in place of Stable-Baselines3's recorder.

    Attributes and file names are Stable-Baselines3's (2.9.2), but for recorded_frames: frames go to
    the encoder when they are rendered, so that memory stays flat. The last video is finished by
    `close`, and otherwise when the wrapper is collected or Python ends.

        envs = make_vec_env("CartPole-v1", 4)
        envs = goalreel.sb3.VecVideoRecorder(envs, "videos", lambda step: step % 10_000 == 0)
    """

    def __init__(
        self,
        venv: VecEnv,
        video_folder: str,
        record_video_trigger: Callable[[int], bool],
        video_length: int = 200,
        name_prefix: str = "rl-video",
        *,
        qp: int = 23,
        preset: str = "veryfast",
        on_video: OnVideo | None = None,
    ) -> None:
        """Wrap `venv`; nothing is recorded before the first reset.

        Args:
            venv: the vector environment; its render mode must be rgb_array.
            video_folder: where the files go; made if it is not there.
            record_video_trigger: whether a recording starts, by the number of steps so far.
            video_length: steps of a recording, which has a frame more.
            name_prefix: of the files, {name_prefix}-step-{first}-to-step-{last}.mp4.
            qp: x264's quantiser, 0 to 51; 0 stores exactly the pixels.
            preset: x264's.
            on_video: called with the path, the video's number from 0 on, and a dict of that number
                as `episode`, the first `step` and `frames`, when a video's file is whole.

        Raises:
            ValueError: the render mode gives no pictures.
            GoalreelError: a setting is not allowed.
        """
        VecEnvWrapper.__init__(self, venv)
        self.env = venv
        base = venv
        while isinstance(base, VecEnvWrapper):
            base = base.venv
        of_gymnasium = isinstance(base, DummyVecEnv | SubprocVecEnv)
        self.env.metadata = base.get_attr("metadata")[0] if of_gymnasium else base.metadata
        if self.env.render_mode != "rgb_array":
            raise ValueError(f"The render_mode must be 'rgb_array', not {self.env.render_mode}")
        self.frames_per_sec = self.env.metadata.get("render_fps", 30)
        self.record_video_trigger, self.video_length = record_video_trigger, video_length
        self.video_folder = os.path.abspath(video_folder)  # noqa: PTH100 (spelt as there)
        Path(self.video_folder).mkdir(parents=True, exist_ok=True)
        self.name_prefix, self.step_id = name_prefix, 0
        self.video_name = self.video_path = ""
        self._options = VideoOptions(self.frames_per_sec, qp, preset, on_video=on_video)
        self._video: VideoWriter | None = None
        self._videos = -1

    @property
    def recording(self) -> bool:
        """Return whether a video is being recorded."""
        return self._video is not None

    def reset(self) -> VecEnvObs:
        """Reset the environments; a recording may start."""
        observations = self.venv.reset()
        if self.record_video_trigger(self.step_id):
            self._start()
        return observations

    def step_wait(self) -> VecEnvStepReturn:
        """Return the step's results and record its frame; a recording may start or be full.

        Raises GoalreelError if the frame is not uint8 (H, W, 3) or ffmpeg fails.
        """
        results = self.venv.step_wait()
        self.step_id += 1
        if self.recording:
            self._capture_frame()
        elif self.record_video_trigger(self.step_id):
            self._start()
        return results

    def close(self) -> None:
        """Close the environments and finish the video. Raises GoalreelError if ffmpeg fails."""
        VecEnvWrapper.close(self)
        self._stop()

    def _start(self) -> None:
        self._stop()
        name = f"{self.name_prefix}-step-{self.step_id}-to-step-{self.step_id + self.video_length}"
        self.video_name = f"{name}.mp4"
        self.video_path = str(Path(self.video_folder, self.video_name))
        self._videos += 1
        told = Path(self.video_path), self._options, {"episode": self._videos}, self.step_id
        self._video = VideoWriter(*told, owner=self)
        self._capture_frame()

    def _capture_frame(self) -> None:
        frame = self.env.render()
        if not isinstance(frame, np.ndarray):
            logger.warn(
                "Recording stopped: expected type of frame returned by render to be a numpy array, "
                f"got instead {type(frame)}."
            )
            self._stop()
            return
        try:
            self._video.write(frame)
        except GoalreelError:
            self._video = None
            raise
        if self._video.written > self.video_length:
            self._stop()

    def _stop(self) -> None:
        video, self._video = self._video, None
        if video is not None:
            video.finish()
