"""MountainCar-v0 as pixels, with each distinct frame rendered and resized once."""

import numpy as np

from goalreel.rendering.warped import warped_frames
from goalreel.training.games.car_envs import Cars
from goalreel.training.games.pixel_envs import EndedGame, PixelStep
from goalreel.training.games.settings import CAR_GAME, GameSettings


class CarPixelEnvs:
    """A PixelEnvs of MountainCar-v0, whose frames are those of `render()`, resized."""

    actions = 3

    def __init__(self, settings: GameSettings, seed: int, num_envs: int):
        self._cars = Cars(seed, num_envs, settings.frame_skip)
        self._pixels = warped_frames(CAR_GAME, settings.warp)
        self.obs = self._pixels.observe(self._cars.positions)
        self._returns, self._furthest = np.zeros(num_envs), self._cars.positions.copy()

    def step(self, actions: np.ndarray) -> PixelStep:
        """Repeat each action for `frame_skip` frames, or until its episode ends."""
        step = self._cars.step(actions)
        next_obs = self._pixels.observe(self._cars.reached)
        over = np.flatnonzero(step.terminated | step.truncated)
        self._returns += step.rewards
        np.maximum(self._furthest, self._cars.reached, out=self._furthest)
        games = over, self._returns[over], self._furthest[over]
        ended = tuple(map(EndedGame, *(column.tolist() for column in games)))
        self.obs = next_obs
        if len(over):
            self.obs = next_obs.copy()
            self.obs[over] = self._pixels.observe(self._cars.positions[over])
            self._returns[over] = 0.0
            self._furthest[over] = self._cars.positions[over]
        # The reward is -1 per action, whatever the number of frames.
        rewards = np.sign(step.rewards).astype(np.float32)
        return PixelStep(rewards, step.terminated, step.truncated, next_obs, ended)

    def close(self) -> None:
        """Do nothing."""
