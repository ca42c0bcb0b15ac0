"""The interface of environments, and `make_environment`, which makes one from a configuration."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from goalreel.environments.action_space import ActionSpace
from goalreel.environments.registry import CLASSIC_CONTROL, describe

# Observations of several environments: an array (num_envs, ...), or one per key of a Dict space.
Batch = np.ndarray | dict[str, "Batch"]
# Signals are what a policy says of its choice, such as values of actions, by name. They are
# (num_envs,) or (num_envs, numbers) float32.
Signals = dict[str, np.ndarray]
# Actions of a policy, its generators after their draws, and its signals.
Acted = tuple[np.ndarray, object, Signals]


class SubEnvs(Protocol):
    """A batch of sub-environments, each of which plays one episode."""

    def observations(self) -> Sequence:
        """Return the observations, one item per sub-environment."""

    def states(self) -> Sequence[np.ndarray]:
        """Return the recorded part of the states: `width` float arrays of shape (num_envs,)."""

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Take an action in each sub-environment, (num_envs, *stored_shape), see ActionSpace.

        Returns rewards, float64, and terminated and truncated, bool: (num_envs,) each.
        """

    def info(self, index: int) -> Mapping[str, float]:
        """Return the numbers of a sub-environment's `info["columns"]`, which become columns."""

    def poses(self) -> Sequence[np.ndarray]:
        """Return what MuJoCo draws, `num_poses` arrays (num_envs,). Others lack this method."""

    def frames(self) -> Sequence:
        """Return each frame of `env.render()`, an array or BlockFrame. Only Gymnasium's have it."""

    def take(self, mask: np.ndarray) -> "SubEnvs":
        """Return the sub-environments that a (num_envs,) boolean mask selects."""

    def close(self) -> None:
        """Release all resources, including those of sub-environments that `take` dropped."""


class Environment(Protocol):
    """An environment that plays episodes from their seeds."""

    id: str
    actions: ActionSpace
    max_episode_steps: int | None  # the time limit; None for the registered one
    width: int  # the number of values in a recorded state
    num_poses: int  # the number of values that MuJoCo draws, else 0
    max_envs: int  # the greatest number of episodes in a batch
    idle_share: float  # the share of a batch that may be stepped beyond its end

    def sub_envs(self, seeds: np.ndarray) -> SubEnvs:
        """Return sub-environments after `env.reset(seed=seed)`; seeds: (num_envs,) int64."""

    def batch(self, observations: Sequence) -> Batch:
        """Return observations as one array (num_envs, ...), or one array per key."""

    def sample_observations(self, count: int) -> Batch:
        """Return (count, ...) examples of observations."""


class PerEnv(list):
    """A policy's state for the episode of each sub-environment, in order."""

    def take(self, mask: np.ndarray) -> "PerEnv":
        """Return the items that a (num_envs,) boolean mask selects."""
        return PerEnv(itertools.compress(self, mask))


def take_rows(batch: Batch, rows: int | slice) -> Batch:
    """Return one or several rows of a batch of observations."""
    if isinstance(batch, Mapping):
        return {key: take_rows(part, rows) for key, part in batch.items()}
    if isinstance(batch, tuple):  # of a recording
        return tuple(take_rows(part, rows) for part in batch)
    return batch[rows]


def parts_of(space) -> list:
    """Return the spaces in a Dict or Tuple of Gymnasium, or the space itself."""
    inner = getattr(space, "spaces", None)
    parts = inner.values() if isinstance(inner, Mapping) else inner
    return [space] if inner is None else sum(map(parts_of, parts), [])


def make_environment(config: Mapping) -> Environment:
    """Return the environment of a stage's configuration, whose keys but `env` are optional."""
    env, kwargs = config["env"], config.get("env_kwargs") or {}
    if describe(env).computed:
        from goalreel.environments.mountain_car import ENVIRONMENTS

        car, limit = ENVIRONMENTS[env], config.get("max_episode_steps")
        return replace(car, max_episode_steps=limit or car.max_episode_steps, **kwargs)
    return gymnasiums_environment(config)


def gymnasiums_environment(config: Mapping) -> Environment:
    """Return the environment of a stage's configuration as one that Gymnasium makes."""
    from goalreel.environments.classic_control import ClassicControl
    from goalreel.environments.gymnasium_env import GymnasiumEnvironment

    wrappers, check = config.get("env_wrappers") or (), config.get("check_determinism", True)
    is_computed = config["env"] in CLASSIC_CONTROL and not wrappers
    maker = ClassicControl if is_computed else GymnasiumEnvironment
    camera = {"camera_name": "camera", "width": "width", "height": "height"}
    drawn = {name: config.get(f"render.{key}") for name, key in camera.items()}
    kwargs = {**(config.get("env_kwargs") or {}), **{k: v for k, v in drawn.items() if v}}
    given = config["env"], kwargs, config.get("max_episode_steps")
    opengl = config.get("render.opengl", config.get("played_opengl"))
    return maker(*given, wrappers, check, opengl, config.get("render.quality") == "draft")
