"""RecordVideo: Gymnasium's wrapper, but frames are encoded when they are rendered."""

import contextlib
import gc
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FunctionType
from typing import Any

import gymnasium
from gymnasium import logger
from gymnasium.error import DependencyNotInstalled
from gymnasium.utils import RecordConstructorArgs

from goalreel.recorders.schedule import capped_cubic_video_schedule
from goalreel.recorders.video_writer import VideoOptions, VideoWriter


class Recorder(RecordConstructorArgs):
    """A wrapper of Gymnasium, whose frames in `recorded_frames` a VideoWriter encodes."""

    def _configure(self, wrapper: type, given: Mapping, own: tuple[str, ...] = ()) -> None:
        """Initialize a class of Gymnasium with the local names of `__init__`, except `own`."""
        # `given` has `video`, a dict of VideoOptions.
        arguments = {k: v for k, v in given.items() if k not in ("self", "env", "__class__")}
        video = arguments.pop("video")
        # It copies its arguments, which the owner of a method may not allow.
        kept = {k: v for k, v in video.items() if k != "on_video" or isinstance(v, FunctionType)}
        RecordConstructorArgs.__init__(self, **arguments, **kept)
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


class RecordVideo(Recorder, gymnasium.wrappers.RecordVideo):
    """Record videos of episodes, or from chosen steps on, like gymnasium.wrappers.RecordVideo.

    Frames go to the encoder when they are rendered, so that memory stays flat and no frame is lost.
    `recorded_frames` counts them. `close` finishes the last video. Otherwise it is finished when
    the wrapper is garbage collected or Python ends, also by an exception. If Python is killed
    (SIGKILL, or SIGTERM without a handler), the frames so far stay next to the other videos in a
    hidden file NAME.mp4.*.part, which is an MP4 file.

    With the render mode rgb_array_list, `render_history` grows until `render` is called, as in
    Gymnasium.

    Examples:
        >>> import gymnasium, goalreel
        >>> env = gymnasium.make("MountainCar-v0", render_mode="rgb_array")
        >>> env = goalreel.RecordVideo(env, "videos", episode_trigger=lambda i: i % 100 == 0)
        >>> observation, info = env.reset(seed=7)
        >>> env.close()  # writes videos/rl-video-episode-0.mp4
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
        """Wrap an environment. Recording starts at a reset or a step that a trigger selects.

        Args:
            env: the environment.
            video_folder: the folder of the videos, which is created if it is missing.
            episode_trigger: takes the episode's number and returns whether to record it. The
                default is capped_cubic_video_schedule.
            step_trigger: takes the number of steps over all episodes and returns whether to start a
                recording.
            video_length: the number of steps in a video, which has one frame more; 0: up to the
                next reset.
            name_prefix: the prefix of file names.
            fps: frames per second, by default the environment's render_fps, or 30.
            disable_logger: whether not to print the name of each video to standard error.
            gc_trigger: takes the episode's number and returns whether to collect garbage after its
                recording.
            video: qp, preset, name_pattern, statistics and on_video of VideoOptions.

        Raises:
            ValueError: the render mode does not return frames.
            GoalreelError: an argument is not allowed.
        """
        self._configure(gymnasium.wrappers.RecordVideo, locals())
        self._episode = new_info(-1)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
        """Reset the environment, finish the episode's video and start one if a trigger says so."""
        self._episode = new_info(self.episode_id + 1, seed)
        return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict]:
        """Step the environment, record its frame, and start or finish a video if due.

        Raises:
            GoalreelError: the frame is not uint8 (H, W, 3), or ffmpeg fails. The video is dropped,
                and the environment can continue.
        """
        result = self.env.step(action)
        self.step_id += 1
        add_step(self._episode, *result[1:4])  # before the video may be finished
        if self.step_trigger and self.step_trigger(self.step_id):
            self.start_recording(f"{self.name_prefix}-step-{self.step_id}")
        if self.recording:
            self._capture_frame()
            if len(self.recorded_frames) > self.video_length:
                self.stop_recording()
        return result

    def start_recording(self, video_name: str) -> None:
        """Finish the current video, if any, and start {video_name}.mp4."""
        super().start_recording(video_name)
        self.recorded_frames = self._writer(video_name, self._episode)

    def stop_recording(self) -> None:
        """Finish the video. Raises GoalreelError if ffmpeg fails. Then there is no file."""
        # The same error as in Gymnasium.
        assert self.recording, "stop_recording was called, but no recording was started"
        video, self.recorded_frames, self.recording = self.recorded_frames, [], False
        self._finish(video, self.episode_id)

    def __del__(self) -> None:
        """Suppress Gymnasium's warning. VideoWriter finishes the video, see its `owner`."""
