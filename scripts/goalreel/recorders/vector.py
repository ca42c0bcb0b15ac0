"""RecordVideo for vector environments: a video of each sub-environment's episode, or one of all.

Importing this module imports gymnasium.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import gymnasium
import gymnasium.wrappers.vector
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from goalreel.errors import GoalreelError
from goalreel.recorders.recorder import Recorder, add_step, new_info
from goalreel.recorders.video_writer import VideoWriter

_FINAL = "final_frame"  # in the info of an episode's last step


class FinalFrame(gymnasium.Wrapper):
    """Draws an episode's last frame before a vector environment resets it in the same step.

        gymnasium.make_vec(ID, 8, "async", vector_kwargs={"autoreset_mode": "SameStep"},
                           wrappers=[goalreel.vector.FinalFrame], render_mode="rgb_array")

    RecordVideo wraps a SyncVectorEnv's environments itself; those of an AsyncVectorEnv live in
    other processes.
    """

    has_final_frame = True

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict]:
        """Step the environment; the last step's info has its picture as `final_frame`."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            info = {**info, _FINAL: self.env.render()}
        return observation, reward, terminated, truncated, info


class RecordVideo(Recorder, gymnasium.wrappers.vector.RecordVideo):
    """Record episodes of vector environments, in place of gymnasium.wrappers.vector.RecordVideo.

    Parameters are Gymnasium's (1.4.0) and those of goalreel.RecordVideo. Each chosen
    sub-environment's episode is a video of its own, {name_prefix}-episode-{number}-env-{index}.mp4,
    from its reset to its own last frame, in every autoreset mode; episodes are counted over all
    sub-environments, in the order of their beginning. Frames go to the encoder when they are
    rendered; nothing is rendered while nothing is recorded. Videos are finished by the episode's
    end, by `close`, or when the wrapper is collected or Python ends.

    With `grid` there is one video of all chosen sub-environments side by side, from the reset of
    the first of them to its end, as Gymnasium's, and with its names.

        envs = gymnasium.make_vec("CartPole-v1", 8, render_mode="rgb_array")
        envs = goalreel.vector.RecordVideo(envs, "videos")
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
        """Wrap `env`; nothing is recorded before the first reset.

        Args:
            env: the vector environment; its render mode must be rgb_array.
            video_folder: where the files go; made if it is not there.
            video_aspect_ratio: width and height of a grid, as near as rows of equal length come.
            record_first_only: whether to record sub-environment 0 alone.
            episode_trigger: whether an episode is recorded, by its number; by default
                capped_cubic_video_schedule.
            step_trigger: whether recordings of all chosen sub-environments start at a step of the
                vector environment, as {name_prefix}-step-{step}-env-{index}.mp4.
            video_length: steps until a recording stops, which then has a frame more; 0: until the
                episode's end.
            name_prefix: of the files.
            fps: by default the environments' render_fps, or 30.
            disable_logger: False names each finished video on standard error.
            gc_trigger: whether to collect garbage after the recording of an episode.
            record: the sub-environments to record, by their indices; None for all.
            grid: whether to make one video of all of them.
            video: qp, preset, name_pattern, statistics and on_video, see VideoOptions.

        Raises:
            ValueError: the render mode gives no pictures.
            GoalreelError: a setting is not allowed, or sub-environments in other processes are
                reset in the same step without FinalFrame.
        """
        given = locals()
        if env.render_mode != "rgb_array":
            raise ValueError(
                f"Render mode is {env.render_mode}, which vector.RecordVideo cannot record; make "
                "the vector environment with render_mode='rgb_array'"
            )
        chosen = range(env.num_envs) if record is None else record
        self.record = (0,) if record_first_only else tuple(chosen)
        if not self.record or sorted(set(self.record) & {*range(env.num_envs)}) != sorted(
            self.record
        ):
            raise GoalreelError(
                f"record: {record!r}; allowed: different indices from 0 to {env.num_envs - 1}, or "
                f"None for all"
            )
        self.grid = grid
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*same-step")  # Gymnasium's loses the last frames
            self._configure(gymnasium.wrappers.vector.RecordVideo, given, ("record", "grid"))
        if self.autoreset_mode == AutoresetMode.SAME_STEP:
            _see_final_frames(env)
        self._episodes = [new_info(-1, None, index) for index in range(self.num_envs)]
        self._over = np.zeros(self.num_envs, bool)  # whose episode ended with the last step
        self._videos: dict[int, VideoWriter] = {}  # by sub-environment; a grid's by its first

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict | None = None
    ) -> tuple[Any, dict]:
        """Reset the environments, or those of options["reset_mask"]; recordings may start."""
        mask = (options or {}).get("reset_mask", np.ones(self.num_envs, bool))
        observations, infos = self.env.reset(seed=seed, options=options)
        seeds = seed
        if isinstance(seed, int | np.integer):
            seeds = [seed + index for index in range(self.num_envs)]
        self._begin(mask, seeds)
        self._record(mask)
        return observations, infos

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict]:
        """Step the environments and record their frames; recordings may start and end.

        Raises GoalreelError if a frame is not uint8 (H, W, 3) or ffmpeg fails.
        """
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        self.step_id += 1
        waits, mode = self._over.copy(), self.autoreset_mode  # waits: for its reset
        if mode == AutoresetMode.NEXT_STEP:
            self._begin(waits)
        for index in np.flatnonzero(~waits).tolist():
            ending = terminations[index], truncations[index]
            add_step(self._episodes[index], rewards[index], *ending)
        over = ~waits & (terminations | truncations)
        if self.step_trigger and self.step_trigger(self.step_id):
            self.start_recording(f"{self.name_prefix}-step-{self.step_id}")
        is_new = ~waits | (mode == AutoresetMode.NEXT_STEP)
        self._record(is_new, over, _final_frames(infos, over))
        self._over = over | (waits & (mode == AutoresetMode.DISABLED))
        if mode == AutoresetMode.SAME_STEP:
            self._begin(over)
            self._record(over)
        return observations, rewards, terminations, truncations, infos

    def start_recording(self, video_name: str) -> None:
        """Start to record {video_name}-env-{index}.mp4 of all chosen sub-environments."""
        self._start(self.record, video_name)

    def stop_recording(self) -> None:
        """Finish all videos. Raises GoalreelError if ffmpeg fails; `close` does this, too."""
        for index in list(self._videos):
            self._stop(index)

    def _begin(self, mask: np.ndarray, seeds: Sequence[int | None] | None = None) -> None:
        """Note that episodes begin, and start the recordings of those that are chosen."""
        for index in np.flatnonzero(mask).tolist():
            self._over[index] = False
            counts = index == self.record[0] if self.grid else True
            self.episode_id += counts
            self._episodes[index] = new_info(self.episode_id, seeds and seeds[index], index)
            if index in self._videos and self.video_length == float("inf"):
                self._stop(index)  # it was reset before its end
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
        """Write the frames of sub-environments that have a new one, and end what is over or full.

        is_new: (num_envs,) bool, which have one; over: whose episode has ended with it; final:
        their last frames, where the environment shows the next episode already.
        """
        recorded = [i for i in self._videos if is_new[i]]
        if not recorded:
            return
        shown = self.record if self.grid else recorded
        frames = self._rendered([i for i in shown if i not in final]) | final
        for index in recorded:
            video = self._videos[index]
            video.append(
                self._side_by_side([frames[i] for i in shown]) if self.grid else frames[index]
            )
            ended = over is not None and over[index] and self.video_length == float("inf")
            if ended or len(video) > self.video_length:
                self._stop(index)

    def _rendered(self, indices: Sequence[int]) -> dict[int, np.ndarray]:
        """Return the pictures of sub-environments."""
        if isinstance(self.env, SyncVectorEnv):
            return {index: self.env.envs[index].render() for index in indices}
        pictures = self.env.render() if indices else ()
        return {index: pictures[index] for index in indices}

    def _side_by_side(self, frames: Sequence[np.ndarray]) -> np.ndarray:
        if self.frame_cols < 0:
            self._get_concat_frame_shape(len(frames), *np.shape(frames[0])[:2])
        return self._concat_frames(frames)


def _see_final_frames(env: VectorEnv) -> None:
    """Have the last frames of episodes drawn, where the same step shows the next one's first."""
    base = env.unwrapped
    if isinstance(base, SyncVectorEnv):
        base.envs = [FinalFrame(one) for one in base.envs]
        return
    try:
        has_final_frames = isinstance(base, AsyncVectorEnv) and all(
            base.get_attr("has_final_frame")
        )
    except AttributeError:
        has_final_frames = False
    if not has_final_frames:
        raise GoalreelError(
            f"{env} resets an episode in the step that ends it, so that its last frame is gone; "
            f"allowed: an AsyncVectorEnv made with wrappers=[goalreel.vector.FinalFrame], a "
            f"SyncVectorEnv, or autoreset_mode=AutoresetMode.NEXT_STEP"
        )


def _final_frames(infos: dict, over: np.ndarray) -> dict[int, np.ndarray]:
    """Take the last frames out of a step's infos."""
    final_info = infos.get("final_info", {})
    frames, _ = final_info.pop(_FINAL, None), final_info.pop(f"_{_FINAL}", None)
    return {} if frames is None else {i: frames[i] for i in np.flatnonzero(over).tolist()}
