"""The replay buffer of states: arrays of a fixed size, in which the oldest is overwritten."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Batch:
    """Transitions."""

    obs: np.ndarray  # (n, 2) float32
    actions: np.ndarray  # (n,) int64
    rewards: np.ndarray  # (n,) float32
    next_obs: np.ndarray  # (n, 2) float32
    discounts: np.ndarray  # (n,) float32, of the value of next_obs: 0 where the episode terminated


class StateReplay:
    """The latest `size` transitions."""

    def __init__(self, size: int):
        """Reserve all memory."""
        self._rows = Batch(
            *(np.zeros((size, 2), np.float32), np.zeros(size, np.int64)),
            *(np.zeros(size, np.float32), np.zeros((size, 2), np.float32)),
            np.zeros(size, np.float32),
        )
        self._size, self._count = size, 0

    def __len__(self) -> int:
        """Return the number of transitions that are held."""
        return min(self._count, self._size)

    def append(self, batch: Batch) -> None:
        """Add transitions, at most as many as fit."""
        places = (self._count + np.arange(len(batch.actions))) % self._size
        for name, column in vars(self._rows).items():
            column[places] = getattr(batch, name)
        self._count += len(places)

    def sample(self, count: int, rng: np.random.Generator) -> Batch:
        """Return `count` transitions, each as likely as another, with repetition."""
        places = rng.integers(len(self), size=count)
        return Batch(*(column[places] for column in vars(self._rows).values()))
