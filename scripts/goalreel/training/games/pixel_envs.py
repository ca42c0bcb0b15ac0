"""Environments given as pixels, several side by side, whose episodes follow one another.

Frames are not stacked here: who acts stacks what it acts on, the replay buffer what is learned
from. Collectors import this under NumPy 1.26 too, without PyTorch.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True)
class EndedGame:
    """A whole game that ended, whatever the learner's episodes were."""

    index: int
    return_: float  # the sum of the environment's own rewards, not clipped
    distance: float  # the furthest position, in the environment's units (pixels in Mario), or nan


@dataclass(frozen=True)
class PixelStep:
    """A step of all environments."""

    rewards: np.ndarray  # (num_envs,) float32, as the learner gets them
    terminated: np.ndarray  # (num_envs,) bool, of the learner's episode, which ends with a life
    truncated: np.ndarray  # (num_envs,) bool
    next_obs: np.ndarray  # (num_envs, 84, 84) uint8, what the step led to, at an episode's end too
    ended: tuple[EndedGame, ...]  # the games that are over


class PixelEnvs(Protocol):
    """Environments side by side.

    Attributes:
        actions: how many there are to choose from, 0 to actions - 1.
        obs: (num_envs, 84, 84) uint8, what to act on next: after an end, that of the next reset.
    """

    actions: int
    obs: np.ndarray

    def step(self, actions: np.ndarray) -> PixelStep:
        """Take (num_envs,) actions and reset where an episode ended; returned arrays stay as is."""

    def close(self) -> None:
        """Free what the environments hold."""
