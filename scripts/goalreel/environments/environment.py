"""What an environment offers, whoever computes it, and how one is made from a configuration."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from goalreel.environments.action_space import ActionSpace
from goalreel.environments.registry import CLASSIC_CONTROL, describe

# Observations of several environments: an array (num_envs, ...), of a Dict space one for each key.
Batch = np.ndarray | dict[str, "Batch"]


class SubEnvs(Protocol):
    """Episodes that are played side by side, one in each sub-environment."""

    def observations(self) -> Sequence:
        """Return what the policy sees, one item per sub-environment."""

    def states(self) -> Sequence[np.ndarray]:
        """Return what is recorded of the state: `width` arrays, (num_envs,) floats each."""

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Take an action in each sub-environment: (num_envs, *actions.stored_shape).

        Returns rewards (num_envs,) float64, terminated and truncated (num_envs,) bool.
        """

    def pictures(self) -> Sequence:
        """Return what `env.render()` draws of each sub-environment, an array or a BlockFrame.

        Only of what Gymnasium plays.
        """

    def take(self, mask: np.ndarray) -> "SubEnvs":
        """Return the sub-environments chosen by a (num_envs,) boolean mask."""

    def close(self) -> None:
        """Release what the sub-environments hold, also those that `take` left out."""


class Environment(Protocol):
    """An environment that episodes can be played in from their seeds."""

    id: str
    actions: ActionSpace
    max_episode_steps: int | None  # the time limit; None for the one that Gymnasium has registered
    width: int  # numbers of a recorded state
    max_envs: int  # how many episodes are played side by side
    idle_share: float  # of those that may be stepped on after their end, which is ignored

    def sub_envs(self, seeds: np.ndarray) -> SubEnvs:
        """Return environments as `env.reset(seed=seed)` leaves them; seeds: (num_envs,) int64."""

    def batch(self, observations: Sequence) -> Batch:
        """Return observations as one array, (num_envs, ...), or one for each key."""

    def sample_observations(self, count: int) -> Batch:
        """Return observations, (count, ...), that a policy may see."""


class PerEnv(list):
    """What a policy keeps of the episode in each sub-environment, in order."""

    def take(self, mask: np.ndarray) -> "PerEnv":
        """Return the items that a (num_envs,) boolean mask chooses."""
        return PerEnv(itertools.compress(self, mask))


def take_rows(batch: Batch, rows: int | slice) -> Batch:
    """Return a row of a batch of observations, or several."""
    if isinstance(batch, dict):
        return {key: take_rows(part, rows) for key, part in batch.items()}
    return batch[rows]


def make_environment(config: Mapping) -> Environment:
    """Return the environment of a stage's configuration.

    It is as registered without the keys env_kwargs, env_wrappers and max_episode_steps.
    """
    env, kwargs = config["env"], config.get("env_kwargs") or {}
    if describe(env).computed:
        from goalreel.environments.mountain_car import ENVIRONMENTS

        limit = config.get("max_episode_steps")
        return replace(
            ENVIRONMENTS[env], **kwargs, **({"max_episode_steps": limit} if limit else {})
        )
    return gymnasiums_environment(config)


def gymnasiums_environment(config: Mapping) -> Environment:
    """Return the environment of a stage's configuration with what plays it in Gymnasium."""
    from goalreel.environments.classic_control import ClassicControl
    from goalreel.environments.gymnasium_env import GymnasiumEnvironment

    wrappers, check = config.get("env_wrappers") or (), config.get("check", True)
    is_computed = config["env"] in CLASSIC_CONTROL and not wrappers
    maker = ClassicControl if is_computed else GymnasiumEnvironment
    kwargs = config.get("env_kwargs") or {}
    return maker(config["env"], kwargs, config.get("max_episode_steps"), wrappers, check)
