"""Epsilon-greedy actions, transitions and their replay buffer."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from goalreel.training.dqn.settings import Settings
from goalreel.training.games.car_envs import Step

Values = Callable[[np.ndarray], np.ndarray]
"""Returns the action values, (n, 3), of (n, 2) float32 observations."""


@dataclass(frozen=True)
class Transitions:
    """A batch of transitions."""

    obs: np.ndarray  # (n, 2) float32
    actions: np.ndarray  # (n,) int64
    rewards: np.ndarray  # (n,) float32
    next_obs: np.ndarray  # (n, 2) float32
    discounts: np.ndarray  # (n,) float32, of the value of next_obs; 0 after termination


def epsilon_at(settings: Settings, decision: int) -> float:
    """Return the share of random actions: from 1 down to `exploration_final_eps`, then constant."""
    progress = min(decision / settings.exploration_steps, 1.0)
    return 1.0 + progress * (settings.exploration_final_eps - 1.0)


def choose(values: Values, obs: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Return the actions, (num_envs,) int8, each random with probability epsilon.

    If all are random, `values` is not called.
    """
    random = rng.random(len(obs)) < epsilon
    actions = rng.integers(3, size=len(obs), dtype=np.int8)
    if not random.all():
        actions[~random] = values(obs[~random]).argmax(axis=1)
    return actions


def transitions(obs: np.ndarray, actions: np.ndarray, step: Step, gamma: float) -> Transitions:
    """Return the transitions of a step. The discount is 0 after termination, not truncation.

    `gamma` is per frame, so an action of several frames has a power of it.
    """
    discounts = np.where(step.terminated, 0.0, gamma**step.lasted)
    rewards, discounts = step.rewards.astype(np.float32), discounts.astype(np.float32)
    return Transitions(obs, actions.astype(np.int64), rewards, step.next_obs, discounts)


class StateReplay:
    """A replay buffer of the latest `size` transitions."""

    def __init__(self, size: int):
        self._rows = Transitions(
            *(np.zeros((size, 2), np.float32), np.zeros(size, np.int64)),
            *(np.zeros(size, np.float32), np.zeros((size, 2), np.float32)),
            np.zeros(size, np.float32),
        )
        self._size, self._count = size, 0

    def __len__(self) -> int:
        return min(self._count, self._size)

    def append(self, batch: Transitions) -> None:
        """Add at most `size` transitions, over the oldest ones."""
        places = (self._count + np.arange(len(batch.actions))) % self._size
        for name, column in vars(self._rows).items():
            column[places] = getattr(batch, name)
        self._count += len(places)

    def sample(self, count: int, rng: np.random.Generator) -> Transitions:
        """Return `count` uniformly random transitions, drawn with replacement."""
        places = rng.integers(len(self), size=count)
        return Transitions(*(column[places] for column in vars(self._rows).values()))
