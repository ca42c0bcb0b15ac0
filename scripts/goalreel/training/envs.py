"""The task that is learned, the interface of environments that play it, Gymnasium's and ALE's."""

import importlib
import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from goalreel.environments.environment import gymnasiums_environment
from goalreel.environments.gymnasium_ids import find_spec
from goalreel.environments.seeding import SEED_BITS
from goalreel.policies.preprocessing import SIDE, WARPS, halve
from goalreel.training.settings import Settings

_MAX_FRAMES = 18_000  # per game of ALE: five minutes, as in the evaluations of Mnih et al., 2015
_LEAST_SIDE = 36  # pixels; smaller arrays are states, such as a board


@dataclass(frozen=True)
class EndedGame:
    """A finished game, which may consist of several episodes of the learner."""

    index: int  # of its environment
    return_: float  # the sum of the rewards as the environment gives them
    steps: int  # decisions
    distance: float = math.nan  # the furthest position (in pixels for Mario)
    success: float = math.nan  # 1.0 or 0.0, if the game tells


@dataclass(frozen=True)
class Step:
    """A step of all environments."""

    rewards: np.ndarray  # (num_envs,) float32, as the learner gets them
    terminated: np.ndarray  # (num_envs,) bool, also at the loss of a life
    truncated: np.ndarray  # (num_envs,) bool
    next_obs: np.ndarray  # (num_envs, *shape), before any reset
    ended: tuple[EndedGame, ...] = ()
    goes_on: np.ndarray = np.False_  # (num_envs,) bool, whether the game goes on, as at a lost life

    @property
    def is_last(self) -> np.ndarray:
        """Whether the next observation is the first one of another game, (num_envs,) bool."""
        return (self.terminated | self.truncated) & ~self.goes_on


class Envs:
    """Vectorized environments that reset ended episodes. Frames are uint8, flat states float32."""

    obs: np.ndarray  # (num_envs, *shape), to act on, after any reset

    def step(self, actions: np.ndarray) -> Step:
        """Take (num_envs,) int64 actions, and reset ended episodes; later steps keep the arrays."""
        raise NotImplementedError

    def close(self) -> None:
        """Free the resources of the environments."""

    def exchange(self, group) -> None:
        """Share what all processes of a Group have seen, after each iteration."""

    def figures(self) -> dict[str, float]:
        """Return own columns of the table of progress."""
        return {}

    def state(self) -> dict:
        """Return what `load` restores. Games begin again."""
        return {}

    def load(self, state: Mapping) -> None:
        """Restore a state."""


@dataclass(frozen=True)
class Task:
    """The task of a training: an environment, and how its observations reach the network."""

    config: Mapping  # env, env_kwargs, env_wrappers and max_episode_steps of the run
    num_actions: int
    shape: tuple[int, ...]  # of an observation
    low: np.ndarray  # the values that the network gets as -1 and 1, (*shape[1:]) for states
    high: np.ndarray
    preprocessing: Mapping  # of the network file

    @property
    def is_pixels(self) -> bool:
        """Whether observations are stacks of frames."""
        return len(self.shape) == 3


def episode_seeds(root: int, index: int) -> Iterator[int]:
    """Yield the seeds of the episodes of an environment."""
    for block in itertools.count():
        key = (index, block, 0)  # its length differs from all other spawn keys
        words = np.random.SeedSequence(root, spawn_key=key).generate_state(64, np.uint64)
        yield from (words >> np.uint64(64 - SEED_BITS)).astype(np.int64).tolist()


class StackedFrames(Envs):
    """Environments whose observations are the latest frames of others'."""

    def __init__(self, envs: Envs, stack: int, background: int | None = None):
        """Stack frames, which `preprocessing.halve` makes smaller if there is a background."""
        self._envs, self._background = envs, background
        self.obs = np.repeat(self.sized(envs.obs)[:, None], stack, axis=1)

    def sized(self, frames: np.ndarray) -> np.ndarray:
        """Return frames of 84x84 pixels with the size of the observations."""
        return frames if self._background is None else halve(frames, self._background)

    def step(self, actions: np.ndarray) -> Step:
        """Step the environments."""
        step = self._envs.step(actions)
        next_obs = np.concatenate([self.obs[:, 1:], self.sized(step.next_obs)[:, None]], axis=1)
        # The first frame of a game fills the stack.
        self.obs = next_obs.copy()
        self.obs[step.is_last] = self.sized(self._envs.obs[step.is_last])[:, None]
        return replace(step, next_obs=next_obs)

    def close(self) -> None:
        """Close the environments."""
        self._envs.close()


class GymnasiumEnvs(Envs):
    """Instances of any Gymnasium environment with discrete actions, stepped one after another."""

    def __init__(self, task: Task, frame_skip: int, seeds: list[Iterator[int]]):
        environment = gymnasiums_environment(task.config)
        draws = task.is_pixels or task.config.get("env_wrappers")  # they may render to observe
        self._envs = [environment.make("rgb_array" if draws else None) for _ in seeds]
        self._frame_skip, self._seeds = frame_skip, seeds
        self._first_action = int(self._envs[0].action_space.start)
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


class AtariEnvs(Envs):
    """An ALE game in AtariVectorEnv, resized by area interpolation, with the signs of rewards."""

    def __init__(self, task: Task, settings: Settings, seed: int, indices: range):
        """Create and reset all games, each environment with its own seed."""
        emulator = importlib.import_module("ale_py")
        emulator.ALEInterface.setLoggerMode(emulator.LoggerMode.Error)  # no banner
        values = find_spec(task.config["env"]).kwargs | (task.config.get("env_kwargs") or {})
        self._env = importlib.import_module("ale_py.vector_env").AtariVectorEnv(
            values["game"],
            len(indices),
            num_threads=min(settings.threads, len(indices)),
            autoreset_mode="SameStep",
            img_height=SIDE,
            img_width=SIDE,
            stack_num=1,
            frameskip=settings.frame_skip,
            maxpool=task.preprocessing["maximum"],
            noop_max=task.preprocessing["noop"],
            use_fire_reset=task.preprocessing["fire"],
            life_loss_info=True,  # a lost life ends the learner's episode, not the game
            reward_clipping=False,
            repeat_action_probability=values["repeat_action_probability"],
            full_action_space=values["full_action_space"],
            max_num_frames_per_episode=_MAX_FRAMES,
        )
        seeds = [np.random.SeedSequence(seed, spawn_key=(n,)).generate_state(1) for n in indices]
        # int32 in ale-py
        obs, info = self._env.reset(seed=(np.concatenate(seeds) >> 1).astype(np.int64))
        self.obs = obs[:, -1].copy()
        self._returns, self._steps = np.zeros(len(indices)), np.zeros(len(indices), int)
        self._number = info["episode_frame_number"].copy()

    def step(self, actions: np.ndarray) -> Step:
        """Take (num_envs,) actions."""
        obs, rewards, terminated, truncated, info = self._env.step(actions)
        self.obs = obs[:, -1].copy()
        self._returns += rewards
        self._steps += 1
        number = info["episode_frame_number"]
        # The frame number goes on after a lost life. It starts again with another game.
        goes_on = ~truncated & (number > self._number)
        (over,) = np.nonzero((terminated | truncated) & ~goes_on)
        games = over, self._returns[over], self._steps[over]
        ended = tuple(map(EndedGame, *(column.tolist() for column in games)))
        self._returns[over], self._steps[over] = 0.0, 0
        self._number = number.copy()
        next_obs = self.obs
        if len(over):  # final_obs is undefined for other environments
            next_obs = self.obs.copy()
            next_obs[over] = info["final_obs"][over, -1]
        rewards = np.sign(rewards).astype(np.float32)
        return Step(rewards, terminated.copy(), truncated.copy(), next_obs, ended, goes_on)

    def close(self) -> None:
        """Free the emulators."""
        self._env.close()


def _observer(space):
    """Return the function from an environment's observation to a frame or a flat state."""
    from gymnasium.spaces import flatten

    if is_picture(space):
        return lambda obs: WARPS["pillow"](np.asarray(obs))
    return lambda obs: flatten(space, obs).astype(np.float32)


def is_picture(space) -> bool:
    """Return whether an observation space is that of pictures, gray or RGB."""
    return has_pixels(space) and space.shape[2:] in ((), (1,), (3,))


def has_pixels(space) -> bool:
    """Return whether a space is of large arrays of bytes, such as pictures."""
    shape = getattr(space, "shape", None) or ()
    is_large = len(shape) >= 2 and sorted(shape)[-2] >= _LEAST_SIDE
    return is_large and getattr(space, "dtype", None) == np.uint8
