"""RecordVideo of Gymnasium's vector environments: a video per episode, or one of all as a grid."""

import contextlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import gymnasium
import gymnasium.wrappers.vector
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from goalreel.errors import GoalreelError
from goalreel.recorders.record_video import Recorder, add_step, new_info
from goalreel.recorders.video_writer import VideoWriter

_FINAL = "final_frame"  # the key in the info of an episode's last step


class FinalFrame(gymnasium.Wrapper):
    """Render an episode's last frame before a vector environment resets it in the same step.

    You need it only for an AsyncVectorEnv with the autoreset mode SameStep, because RecordVideo
    wraps the environments of a SyncVectorEnv itself.

    Examples:
        >>> envs = gymnasium.make_vec(
        ...     "CartPole-v1", 8, "async", render_mode="rgb_array",
        ...     vector_kwargs={"autoreset_mode": "SameStep"},
        ...     wrappers=[goalreel.vector.FinalFrame],
        ... )
    """

    has_final_frame = True

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict]:
        """Step the environment. The info of an episode's last step has `final_frame`."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            info = {**info, _FINAL: self.env.render()}
        return observation, reward, terminated, truncated, info


class RecordVideo(Recorder, gymnasium.wrappers.vector.RecordVideo):
    """Record episodes of vector environments, like gymnasium.wrappers.vector.RecordVideo.

    Each episode of a chosen sub-environment is a video of its own, from its reset to its last
    frame, in every autoreset mode: {name_prefix}-episode-{number}-env-{index}.mp4. Episodes are
    numbered over all sub-environments in the order in which they start. Frames go to the encoder
    when they are rendered, and nothing is rendered without a recording. A video is finished at the
    end of its episode, by `close`, or when the wrapper is garbage collected or Python ends.

    With `grid` there is one video of all chosen sub-environments, from the reset of the first of
    them to its end, with the names of Gymnasium's recorder.

    Examples:
        >>> envs = gymnasium.make_vec("CartPole-v1", 8, render_mode="rgb_array")
        >>> envs = goalreel.vector.RecordVideo(envs, "videos")
        >>> observations, infos = envs.reset(seed=1)
    """

    def __init__(
        self,
        env: VectorEnv,
        video_folder: str,
        video_aspect_ratio: tuple[int, int] = (1, 1),
        record_first_only: bool = False,
        episode_trigger: Callable[[int], bool] | None = None,
        step_trigger: Callable[[int], bool] | None = None,
        video_length: int = 0,
        name_prefix: str = "rl-video",
        fps: float | None = None,
        disable_logger: bool = True,
        gc_trigger: Callable[[int], bool] | None = lambda episode: True,
        *,
        record: Sequence[int] | None = None,
        grid: bool = False,
        **video: Any,
    ) -> None:
        """Wrap a vector environment. Recording starts at a reset or a step that a trigger selects.

        Args:
            env: the vector environment, with the render mode rgb_array.
            video_folder: the folder of the videos, which is created if it is missing.
            video_aspect_ratio: about the width and height of a grid, whose rows have equal lengths.
            record_first_only: whether to record only sub-environment 0.
            episode_trigger: takes the episode's number and returns whether to record it. The
                default is capped_cubic_video_schedule.
            step_trigger: takes the number of steps of the vector environment and returns whether to
                record all chosen sub-environments, as {name_prefix}-step-{step}-env-{index}.mp4.
            video_length: the number of steps in a video, which has one frame more; 0: up to the end
                of the episode.
            name_prefix: the prefix of file names.
            fps: frames per second, by default the environments' render_fps, or 30.
            disable_logger: whether not to print the name of each video to standard error.
            gc_trigger: takes the episode's number and returns whether to collect garbage after its
                recording.
            record: the indices of the sub-environments to record, None for all.
            grid: whether to make one video of all of them.
            video: qp, preset, name_pattern, statistics and on_video of VideoOptions.

        Raises:
            ValueError: the render mode does not return frames.
            GoalreelError: an argument is not allowed, or FinalFrame is missing.
        """
        given = locals()
        chosen = range(env.num_envs) if record is None else record
        self.record = (0,) if record_first_only else tuple(chosen)
        if not 0 < len({*self.record} & {*range(env.num_envs)}) == len(self.record):
            fix = f"Use different indices from 0 to {env.num_envs - 1}, or None for all."
            raise GoalreelError(f"record: {record!r} is not allowed. {fix}")
        self.grid = grid
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*same-step")  # goalreel keeps the last frames
            self._configure(gymnasium.wrappers.vector.RecordVideo, given, ("record", "grid"))
        if self.autoreset_mode == AutoresetMode.SAME_STEP:
            _require_final_frames(env)
        self._episodes = [new_info(-1, None, index) for index in range(self.num_envs)]
        self._has_ended = np.zeros(self.num_envs, bool)  # the episodes that the last step ended
        self._videos: dict[int, VideoWriter] = {}  # by sub-environment, a grid's by its first

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict | None = None
    ) -> tuple[Any, dict]:
        """Reset all sub-environments, or those of options["reset_mask"], and start recordings."""
        mask = (options or {}).get("reset_mask", np.ones(self.num_envs, bool))
        observations, infos = self.env.reset(seed=seed, options=options)
        if isinstance(seed, int | np.integer):
            seed = [seed + index for index in range(self.num_envs)]
        self._begin(mask, seed)
        self._record(mask)
        return observations, infos

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict]:
        """Step, and record frames. Raises GoalreelError if one is not uint8, or if ffmpeg fails."""
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        self.step_id += 1
        waits, mode = self._has_ended.copy(), self.autoreset_mode  # waits for a reset
        if mode == AutoresetMode.NEXT_STEP:
            self._begin(waits)
        for index in np.flatnonzero(~waits).tolist():
            add_step(self._episodes[index], rewards[index], terminations[index], truncations[index])
        over = ~waits & (terminations | truncations)
        if self.step_trigger and self.step_trigger(self.step_id):
            self.start_recording(f"{self.name_prefix}-step-{self.step_id}")
        is_new = ~waits | (mode == AutoresetMode.NEXT_STEP)
        self._record(is_new, over, _final_frames(infos, over))
        self._has_ended = over | (waits & (mode == AutoresetMode.DISABLED))
        if mode == AutoresetMode.SAME_STEP:
            self._begin(over)
            self._record(over)
        return observations, rewards, terminations, truncations, infos

    def start_recording(self, video_name: str) -> None:
        """Start videos {video_name}-env-{index}.mp4 of all chosen sub-environments."""
        self._start(self.record, video_name)

    def stop_recording(self) -> None:
        """Finish all videos, as `close` does. Raises GoalreelError if ffmpeg fails."""
        for index in list(self._videos):
            self._stop(index)

    def _begin(self, mask: np.ndarray, seeds: Sequence[int | None] | None = None) -> None:
        """Start episodes, and the recordings of those that the trigger selects."""
        for index in np.flatnonzero(mask).tolist():
            self._has_ended[index] = False
            counts = index == self.record[0] if self.grid else True
            self.episode_id += counts
            self._episodes[index] = new_info(self.episode_id, seeds and seeds[index], index)
            if index in self._videos and self.video_length == float("inf"):
                self._stop(index)  # the reset cut it short
            wanted = index in self.record and counts
            if wanted and self.episode_trigger and self.episode_trigger(self.episode_id):
                self._start([index], f"{self.name_prefix}-episode-{self.episode_id}")

    def _start(self, indices: Sequence[int], video_name: str) -> None:
        for index in indices[:1] if self.grid else indices:
            if index in self._videos:
                self._stop(index)
            name_of_file = video_name if self.grid else f"{video_name}-env-{index}"
            self._videos[index] = self._writer(name_of_file, self._episodes[index])
        self.recording = True

    def _stop(self, index: int) -> None:
        video = self._videos.pop(index)
        self.recording = bool(self._videos)
        self._finish(video, self._episodes[index]["episode"])

    def _record(
        self,
        is_new: np.ndarray,
        over: np.ndarray | None = None,
        final: Mapping[int, np.ndarray] = MappingProxyType({}),
    ) -> None:
        """Write the new frames of sub-environments, and finish the videos that end."""
        # is_new, over: (num_envs,) bool, those with a new frame, and those whose episode it ended
        # final: the last frames of those that show the next episode
        recorded = [i for i in self._videos if is_new[i]]
        if not recorded:
            return
        shown = self.record if self.grid else recorded
        frames = self._render([i for i in shown if i not in final]) | final
        for index in recorded:
            video, frame = self._videos[index], frames[index]
            if self.grid:
                if self.frame_cols < 0:
                    self._get_concat_frame_shape(len(shown), *np.shape(frame)[:2])
                frame = self._concat_frames([frames[i] for i in shown])
            video.append(frame)
            ended = over is not None and over[index] and self.video_length == float("inf")
            if ended or len(video) > self.video_length:
                self._stop(index)

    def _render(self, indices: Sequence[int]) -> dict[int, np.ndarray]:
        if isinstance(self.env, SyncVectorEnv):
            return {index: self.env.envs[index].render() for index in indices}
        frames = self.env.render() if indices else ()
        return {index: frames[index] for index in indices}


def _require_final_frames(env: VectorEnv) -> None:
    """Raise GoalreelError if a same-step environment cannot provide last frames."""
    base = env.unwrapped
    if isinstance(base, SyncVectorEnv):
        base.envs = [FinalFrame(sub_env) for sub_env in base.envs]
        return
    with contextlib.suppress(AttributeError):
        if isinstance(base, AsyncVectorEnv) and all(base.get_attr("has_final_frame")):
            return
    raise GoalreelError(
        f"env: {env} loses the last frame of each episode, as the last step resets it. Use:\n"
        f"  an AsyncVectorEnv with wrappers=[goalreel.vector.FinalFrame]\n"
        f"  a SyncVectorEnv\n  autoreset_mode=AutoresetMode.NEXT_STEP"
    )


def _final_frames(infos: dict, over: np.ndarray) -> dict[int, np.ndarray]:
    """Remove the last frames from the infos of a step and return them."""
    final_info = infos.get("final_info", {})
    frames, _ = final_info.pop(_FINAL, None), final_info.pop(f"_{_FINAL}", None)
    return {} if frames is None else {i: frames[i] for i in np.flatnonzero(over).tolist()}
