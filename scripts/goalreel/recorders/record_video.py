"""RecordVideo: Gymnasium's wrapper of that name, with frames encoded as they are rendered.

Importing this module imports gymnasium.
"""

from collections.abc import Callable
from typing import Any

import gymnasium

from goalreel.recorders.recorder import Recorder, add_step, new_info


class RecordVideo(Recorder, gymnasium.wrappers.RecordVideo):
    """Record videos of episodes, or from steps on, in place of gymnasium.wrappers.RecordVideo.

    It is Gymnasium's wrapper, but frames go to the encoder when they are rendered, and
    `recorded_frames` counts them. No frame is lost.
    The last video is finished by `close`, and otherwise when the wrapper is collected or Python
    ends, by an exception too. Where Python is killed (SIGKILL, or SIGTERM without a handler) its
    frames stay in a hidden file NAME.mp4.*.part beside the others, which is an MP4 file.

    With render mode rgb_array_list `render_history` grows until `render` is called, as
    Gymnasium's does.

        env = RecordVideo(gymnasium.make("MountainCar-v0", render_mode="rgb_array"), "videos")
    """

    def __init__(
        self,
        env: gymnasium.Env,
        video_folder: str,
        episode_trigger: Callable[[int], bool] | None = None,
        step_trigger: Callable[[int], bool] | None = None,
        video_length: int = 0,
        name_prefix: str = "rl-video",
        fps: float | None = None,
        disable_logger: bool = True,
        gc_trigger: Callable[[int], bool] | None = lambda episode: True,
        **video: Any,
    ) -> None:
        """Wrap `env`; nothing is recorded before the first reset.

        Args:
            env: the environment.
            video_folder: where the files go; made if it is not there.
            episode_trigger: whether an episode's recording starts at its reset; by default
                capped_cubic_video_schedule.
            step_trigger: whether one starts at a step, counted over all episodes.
            video_length: steps until a recording stops, which then has a frame more; 0: until the
                next reset.
            name_prefix: of the files.
            fps: by default the environment's render_fps, or 30.
            disable_logger: False names each finished video on standard error.
            gc_trigger: whether to collect garbage after a recording in this episode.
            video: qp, preset, name_pattern, statistics and on_video, see VideoOptions.

        Raises:
            ValueError: the render mode gives no pictures.
            GoalreelError: a setting is not allowed.
        """
        self._configure(gymnasium.wrappers.RecordVideo, locals())
        self._episode = new_info(-1)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
        """Reset the environment; the recording of an episode ends, and another may start."""
        self._episode = new_info(self.episode_id + 1, seed)
        return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict]:
        """Step the environment and record the frame; a recording may start or be full.

        Raises GoalreelError if the frame is not uint8 (H, W, 3) or ffmpeg fails; the recording is
        dropped then, and the environment can go on.
        """
        result = self.env.step(action)
        self.step_id += 1
        add_step(self._episode, *result[1:4])  # before the recording may end
        if self.step_trigger and self.step_trigger(self.step_id):
            self.start_recording(f"{self.name_prefix}-step-{self.step_id}")
        if self.recording:
            self._capture_frame()
            if len(self.recorded_frames) > self.video_length:
                self.stop_recording()
        return result

    def start_recording(self, video_name: str) -> None:
        """Start to record {video_name}.mp4, after finishing what is being recorded."""
        super().start_recording(video_name)
        self.recorded_frames = self._writer(video_name, self._episode)

    def stop_recording(self) -> None:
        """Finish the video. Raises GoalreelError if ffmpeg fails; there is no file then."""
        # Gymnasium's own words, and its AssertionError.
        assert self.recording, "stop_recording was called, but no recording was started"
        video, self.recorded_frames, self.recording = self.recorded_frames, [], False
        self._finish(video, self.episode_id)

    def __del__(self) -> None:
        """Say nothing of a video that was not closed: it is finished, see VideoWriter's `owner`."""
