"""The replay buffer of states: arrays that are made once, the oldest transition written over."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Batch:
    """Transitions, (n, 2) float32 and (n,) columns; actions int64, discounts float32.

    discounts: what the value of `after` counts for, 0 where the episode terminated
    """

    seen: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    after: np.ndarray
    discounts: np.ndarray


class StateReplay:
    """The latest `size` transitions."""

    def __init__(self, size: int, observation: int = 2):
        """Reserve all memory."""
        self._seen = np.zeros((size, observation), np.float32)
        self._after = np.zeros((size, observation), np.float32)
        self._actions = np.zeros(size, np.int64)
        self._rewards = np.zeros(size, np.float32)
        self._discounts = np.zeros(size, np.float32)
        self._size, self._count = size, 0

    def __len__(self) -> int:
        """Return the number of transitions that are held."""
        return min(self._count, self._size)

    def append(self, batch: Batch) -> None:
        """Add transitions, at most as many as fit."""
        places = (self._count + np.arange(len(batch.actions))) % self._size
        self._seen[places], self._after[places] = batch.seen, batch.after
        self._actions[places], self._rewards[places] = batch.actions, batch.rewards
        self._discounts[places] = batch.discounts
        self._count += len(places)

    def sample(self, count: int, generator: np.random.Generator) -> Batch:
        """Return `count` transitions, each as likely as another, with repetition."""
        places = generator.integers(len(self), size=count)
        return Batch(
            self._seen[places],
            self._actions[places],
            self._rewards[places],
            self._after[places],
            self._discounts[places],
        )
