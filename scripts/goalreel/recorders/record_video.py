"""RecordVideo: Gymnasium's wrapper of that name, with frames encoded as they are rendered.

A recording starts and ends as in Gymnasium 1.4.0. Importing this module imports gymnasium.
"""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import logger

from goalreel.errors import GoalreelError
from goalreel.recorders.recorder import Recorder, begun, stepped
from goalreel.recorders.video_writer import VideoWriter


class RecordVideo(gymnasium.Wrapper, Recorder):
    """Record videos of episodes, or from steps on, in place of gymnasium.wrappers.RecordVideo.

    Attributes, methods, warnings and file names are Gymnasium's (1.4.0), but for recorded_frames:
    frames go to the encoder when they are rendered, and `written` counts them. No frame is lost.
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
        arguments = {
            name: value
            for name, value in locals().items()
            if name not in ("self", "env", "__class__")
        }
        gymnasium.Wrapper.__init__(self, env)
        if env.render_mode in {None, "human", "ansi"}:
            raise ValueError(
                f"Render mode is {env.render_mode}, which RecordVideo cannot record; make the "
                "environment with one that returns images, such as rgb_array"
            )
        self._configure(arguments, self.metadata)
        self.render_history: list[Any] = []
        self.step_id = -1
        self.episode_id = -1
        self._episode = begun(-1)
        self._video: VideoWriter | None = None

    @property
    def recording(self) -> bool:
        """Return whether a video is being recorded."""
        return self._video is not None

    @property
    def written(self) -> int:
        """Return the number of frames of the video that is being recorded."""
        return self._video.written if self._video else 0

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
        """Reset the environment; the recording of an episode ends, and another may start."""
        observation, info = super().reset(seed=seed, options=options)
        self.episode_id += 1
        self._episode = begun(self.episode_id, seed)
        if self.recording and self.video_length == float("inf"):
            self.stop_recording()
        if self.episode_trigger and self.episode_trigger(self.episode_id):
            self.start_recording(f"{self.name_prefix}-episode-{self.episode_id}")
        self._record()
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict]:
        """Step the environment and record the frame; a recording may start or be full.

        Raises GoalreelError if the frame is not uint8 (H, W, 3) or ffmpeg fails; the recording is
        dropped then, and the environment can go on.
        """
        result = self.env.step(action)
        self.step_id += 1
        stepped(self._episode, *result[1:4])
        if self.step_trigger and self.step_trigger(self.step_id):
            self.start_recording(f"{self.name_prefix}-step-{self.step_id}")
        self._record()
        return result

    def render(self) -> Any:
        """Return what the environment renders; a list also has the frames taken for the video."""
        rendered = super().render()
        if self.recording and isinstance(rendered, list):
            for frame in rendered:
                self._write(frame)
        if self.render_history:
            rendered = self.render_history + rendered
            self.render_history = []
        return rendered

    def close(self) -> None:
        """Close the environment and finish the video. Raises GoalreelError if ffmpeg fails."""
        super().close()
        if self.recording:
            self.stop_recording()

    def __del__(self) -> None:
        """Finish the video, where `close` has not; there is none if `__init__` has failed."""
        if video := getattr(self, "_video", None):
            video.finish()
            self._video = None

    def start_recording(self, video_name: str) -> None:
        """Start to record {video_name}.mp4, after finishing what is being recorded."""
        if self.recording:
            self.stop_recording()
        self._video = self._writer(video_name, self.step_id, self._episode)

    def stop_recording(self) -> None:
        """Finish the video. Raises GoalreelError if ffmpeg fails; there is no file then."""
        # Gymnasium's own words, and its AssertionError.
        assert self.recording, "stop_recording was called, but no recording was started"
        video, self._video = self._video, None
        self._finish(video, self.episode_id)

    def _record(self) -> None:
        """Record a frame, if there is a recording, and end it if it is full."""
        if self.recording:
            self._capture_frame()
            if self.written > self.video_length:
                self.stop_recording()

    def _capture_frame(self) -> None:
        frame = self.env.render()
        if isinstance(frame, list):
            if not frame:
                logger.warn(
                    "Trying to capture render frame but 'env.render()' has just been called. "
                    "The frame cannot be captured."
                )
                return
            self.render_history += frame
            frame = frame[-1]
        if isinstance(frame, np.ndarray):
            self._write(frame)
        else:
            self.stop_recording()
            logger.warn(
                "Recording stopped: expected type of frame returned by render to be a numpy array, "
                f"got instead {type(frame)}."
            )

    def _write(self, frame: np.ndarray) -> None:
        try:
            self._video.write(frame)
        except GoalreelError:
            self._video = None
            raise
