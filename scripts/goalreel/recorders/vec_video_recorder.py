"""VecVideoRecorder: Stable-Baselines3's wrapper of that name, with frames encoded as they come.

Importing this module imports stable_baselines3.
"""

from collections.abc import Callable
from pathlib import Path

from stable_baselines3.common import vec_env

from goalreel.recorders.recorder import without_moviepy
from goalreel.recorders.video_writer import OnVideo, VideoOptions, VideoWriter


class VecVideoRecorder(vec_env.VecVideoRecorder):
    """Record videos of all environments side by side, in place of Stable-Baselines3's recorder.

    It is Stable-Baselines3's wrapper, but frames go to the encoder when they are rendered, so that
    memory stays flat. The last video is finished by `close`, and otherwise when the wrapper is
    collected or Python ends.

        envs = make_vec_env("CartPole-v1", 4)
        envs = goalreel.sb3.VecVideoRecorder(envs, "videos", lambda step: step % 10_000 == 0)
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
            AssertionError: the render mode gives no pictures.
            GoalreelError: a setting is not allowed.
        """
        with without_moviepy():
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
        """Say nothing of a video that was not closed: it is finished, see VideoWriter's `owner`."""
