"""Any Gymnasium environment with discrete actions, its instances stepped one after another."""

from collections.abc import Iterator

import numpy as np

from goalreel.environments.environment import gymnasiums_environment
from goalreel.policies.preprocessing import WARPS
from goalreel.training.envs import EndedGame, Envs, Step, Task

_LEAST_SIDE = 36  # pixels; smaller arrays are states, such as a board


class GymnasiumEnvs(Envs):
    """Instances of any Gymnasium environment with discrete actions, stepped one after another."""

    def __init__(self, task: Task, frame_skip: int, seeds: list[Iterator[int]]):
        self._environment = gymnasiums_environment(task.config)
        self._envs = [self._environment.make(None) for _ in seeds]
        self.num_actions, self._task, self._frame_skip = task.num_actions, task, frame_skip
        space = self._envs[0].action_space
        self._first_action = int(space.start)
        self._seeds = seeds
        self._returns, self._steps = np.zeros(len(seeds)), np.zeros(len(seeds), int)
        self._observe = _observer(self._envs[0].observation_space)
        self.obs = np.stack([self._reset(index) for index in range(len(seeds))])

    def _reset(self, index: int) -> np.ndarray:
        return self._observe(self._envs[index].reset(seed=next(self._seeds[index]))[0])

    def step(self, actions: np.ndarray) -> Step:
        """Repeat each action for `frame_skip` steps, or until its episode ends."""
        rows, obs, ended = [], [], []
        for index, action in enumerate((actions + self._first_action).tolist()):
            total = 0.0
            for _ in range(self._frame_skip):
                raw, reward, terminated, truncated, _ = self._envs[index].step(action)
                total += float(reward)
                if terminated or truncated:
                    break
            self._returns[index] += total
            self._steps[index] += 1
            next_obs = self._observe(raw)
            rows.append((total, terminated, truncated, next_obs))
            if terminated or truncated:
                ended.append(EndedGame(index, float(self._returns[index]), int(self._steps[index])))
                self._returns[index], self._steps[index] = 0.0, 0
                next_obs = self._reset(index)
            obs.append(next_obs)
        self.obs = np.stack(obs)
        rewards, terminated, truncated, next_obs = zip(*rows, strict=True)
        flags = np.array(terminated, bool), np.array(truncated, bool)
        return Step(np.array(rewards, np.float32), *flags, np.stack(next_obs), tuple(ended))

    def close(self) -> None:
        """Close all instances."""
        for env in self._envs:
            env.close()


def _observer(space):
    """Return the function from an environment's observation to a frame or a flat state."""
    from gymnasium.spaces import flatten

    if is_picture(space):
        return lambda obs: WARPS["pillow"](np.asarray(obs))
    return lambda obs: flatten(space, obs).astype(np.float32)


def is_picture(space) -> bool:
    """Return whether an observation space is that of pictures, gray or RGB."""
    shape = getattr(space, "shape", None) or ()
    channels = shape[2:] in ((), (1,), (3,))
    is_large = len(shape) >= 2 and min(shape[:2]) >= _LEAST_SIDE
    return is_large and channels and getattr(space, "dtype", None) == np.uint8
