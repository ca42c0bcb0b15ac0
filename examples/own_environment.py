"""Example of your own environment: catch the ball before it reaches the ground.

The Gymnasium page "Create a Custom Environment" explains each part. goalreel needs the render mode
rgb_array, and all randomness from self.np_random, which the seed sets.
"""

import gymnasium
import numpy as np
from gymnasium import spaces

WIDTH, HEIGHT, CELL = 12, 9, 20


class Catch(gymnasium.Env):
    """A ball falls and drifts to one side. The player below moves left, stays or moves right."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 6}
    observation_space = spaces.Box(0, max(WIDTH, HEIGHT), (3,), np.float32)  # ball x, y; player x
    action_space = spaces.Discrete(3)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.ball = np.array([self.np_random.integers(WIDTH), 0])
        self.drift = self.np_random.integers(-1, 2)
        self.player = WIDTH // 2
        return self._observation(), {}

    def step(self, action):
        self.player = int(np.clip(self.player + action - 1, 0, WIDTH - 1))
        self.ball = np.clip(self.ball + [self.drift, 1], 0, [WIDTH - 1, HEIGHT - 1])
        landed = self.ball[1] == HEIGHT - 1
        reward = float(landed and self.ball[0] == self.player)
        return self._observation(), reward, bool(landed), False, {}

    def render(self):
        grid = np.full((HEIGHT, WIDTH, 3), [24, 32, 48], np.uint8)
        grid[-1, self.player] = [90, 200, 120]
        grid[self.ball[1], self.ball[0]] = [250, 190, 60]
        return grid.repeat(CELL, 0).repeat(CELL, 1)

    def _observation(self):
        return np.array([*self.ball, self.player], np.float32)


gymnasium.register("Catch-v0", Catch, max_episode_steps=100)
