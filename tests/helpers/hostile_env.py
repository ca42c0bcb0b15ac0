"""The module of an environment whose methods run the code of its arguments."""

ENV = """import ctypes, os, random, sys, threading, time

import gymnasium
import numpy as np


class Hostile(gymnasium.Env):
    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)

    def __init__(self, render_mode=None, step="", reset="", render="", close="", space=None):
        self.render_mode, self.faults = render_mode, (step, reset, render, close)
        if space:
            self.observation_space = eval(space)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps, obs = 0, np.zeros(2, np.float32)
        names = {"obs": obs, "result": (obs, {})}
        exec(self.faults[1], globals(), names)
        return names["result"]

    def step(self, action):
        self.steps += 1
        obs = np.full(2, self.steps / 10, np.float32)
        names = {"obs": obs, "reward": 1.0, "end": self.steps > 9}
        if self.steps == 3:
            exec(self.faults[0], globals(), names)
        result = names["obs"], names["reward"], names["end"], False, {}
        return names.get("result", result)

    def render(self):
        names = {"image": np.full((32, 48, 3), self.steps, np.uint8)}
        exec(self.faults[2], globals(), names)
        return names["image"]

    def close(self):
        exec(self.faults[3])


gymnasium.register("Hostile-v0", Hostile)
"""
