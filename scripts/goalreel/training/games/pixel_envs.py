"""Vectorized environments whose observations are single 84x84 frames.

Collectors and replay buffer stack the frames. Collectors import this module without PyTorch, also
with NumPy 1.26.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True)
class EndedGame:
    """A finished game, which may consist of several episodes of the learner."""

    index: int
    return_: float  # the sum of the unclipped rewards
    distance: float  # the furthest position (in pixels for Mario), or nan


@dataclass(frozen=True)
class PixelStep:
    """A step of all environments."""

    rewards: np.ndarray  # (num_envs,) float32, clipped
    terminated: np.ndarray  # (num_envs,) bool, also at the loss of a life
    truncated: np.ndarray  # (num_envs,) bool
    next_obs: np.ndarray  # (num_envs, 84, 84) uint8, before any reset
    ended: tuple[EndedGame, ...]  # the games that ended


class PixelEnvs(Protocol):
    """Vectorized environments."""

    actions: int  # their number
    obs: np.ndarray  # (num_envs, 84, 84) uint8, to act on, after any reset

    def step(self, actions: np.ndarray) -> PixelStep:
        """Take (num_envs,) actions, and reset ended episodes; later steps keep the arrays."""

    def close(self) -> None:
        """Free the resources of the environments."""
