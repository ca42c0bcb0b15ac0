"""MountainCar-v0 as pixels, with each distinct frame rendered and resized once."""

from collections.abc import Iterable, Iterator

import numpy as np

from goalreel.environments.mountain_car import DISCRETE, reset
from goalreel.rendering.warped import warped_frames
from goalreel.training.envs import EndedGame, Envs, Step


class CarPixelEnvs(Envs):
    """Cars whose frames are those of `render()`, resized. The reward is -1 per decision."""

    def __init__(self, frame_skip: int, seeds: list[Iterator[int]]):
        self._frame_skip, self._seeds = frame_skip, seeds
        self._pixels = warped_frames(DISCRETE.id, "pillow")
        self._states = self._starts(range(len(seeds)))  # (2, num_envs)
        self._steps, self._furthest = np.zeros(len(seeds), int), self._states[0].copy()
        self.obs = self._pixels.observe(self._states[0])

    def _starts(self, indices: Iterable[int]) -> np.ndarray:
        return reset(np.array([next(self._seeds[index]) for index in indices]))

    def step(self, actions: np.ndarray) -> Step:
        """Repeat each action for `frame_skip` steps, or until its episode ends."""
        arrived = np.zeros(len(actions), bool)
        for _ in range(self._frame_skip):
            runs = ~arrived & (self._steps < DISCRETE.max_episode_steps)
            states, _, goal = DISCRETE.step(self._states, actions)
            self._states, self._steps = np.where(runs, states, self._states), self._steps + runs
            arrived |= runs & goal
        truncated = self._steps >= DISCRETE.max_episode_steps
        self._furthest = np.maximum(self._furthest, self._states[0])
        self.obs = next_obs = self._pixels.observe(self._states[0])
        over, ended = np.flatnonzero(arrived | truncated), ()
        if len(over):
            steps, furthest = self._steps[over], self._furthest[over]
            decisions, success = -(-steps // self._frame_skip), arrived[over].astype(float)
            columns = over, -steps.astype(float), decisions, furthest, success
            ended = tuple(map(EndedGame, *(column.tolist() for column in columns)))
            self._states[:, over] = starts = self._starts(over)
            self._furthest[over], self._steps[over] = starts[0], 0
            self.obs = next_obs.copy()
            self.obs[over] = self._pixels.observe(starts[0])
        rewards = np.full(len(actions), -1.0, np.float32)
        return Step(rewards, arrived, truncated, next_obs, ended)
