"""Represent action spaces as boxes of numbers.

Discrete, MultiDiscrete and MultiBinary spaces become boxes of whole numbers. All spaces are then
stored, sampled and checked by the same code, which does not need Gymnasium.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from goalreel.errors import GoalreelError


@dataclass(frozen=True)
class ActionSpace:
    """An action space as a box with bounds."""

    shape: tuple[int, ...]  # the shape of an action; () for a scalar (Discrete)
    dtype: type  # the integer or float type that Gymnasium's environment takes
    low: np.ndarray  # (numbers,), the least values allowed
    high: np.ndarray  # (numbers,), the greatest values allowed, inclusive
    scalar_dtype: type | None = None  # the dtype of an action stored as one number

    @property
    def is_integer(self) -> bool:
        """Whether the actions are whole numbers."""
        return np.dtype(self.dtype).kind in "iub"

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """The shape of an action in the trajectory file, () or (numbers,)."""
        return (len(self.low),) if self.shape and not self.scalar_dtype else ()

    @property
    def stored_dtype(self) -> type:
        """The dtype of an action in the trajectory file."""
        return self.scalar_dtype or (np.int64 if self.is_integer else self.dtype)

    def __str__(self) -> str:
        low, high = (", ".join(dict.fromkeys(f"{x:g}" for x in v)) for v in (self.low, self.high))
        kind = "whole numbers" if self.is_integer else "floats"
        return f"{kind} from {low} to {high}, of shape {self.shape} each"

    def from_uniform(self, draws: Sequence[np.ndarray]) -> np.ndarray:
        """Return actions, (num_envs, *stored_shape), of draws in [0, 1), (num_envs,) per number."""
        unit = np.stack(draws, axis=1)
        if self.is_integer:
            chosen = self.low + np.floor(unit * (self.high - self.low + 1))
        else:
            chosen = self.low + unit * (self.high - self.low)
        return chosen.astype(self.stored_dtype).reshape(len(unit), *self.stored_shape)

    def validate(self, actions: object, num_envs: int, source: str) -> np.ndarray:
        """Return a batch of actions, (num_envs, *shape), as (num_envs, *stored_shape).

        Raises GoalreelError, which begins with the `source` of the actions, if their shape, kind or
        bounds are wrong.
        """
        shape = (num_envs, *self.shape)
        expected = f"Expected: {num_envs} actions, {self}, as an array of shape {shape}"
        try:
            array = np.asarray(actions)
        except Exception as error:  # rows of different lengths, or a tensor of PyTorch
            raise GoalreelError(f"{source} returned no array ({error}). {expected}") from None
        if array.shape != shape:
            raise GoalreelError(f"{source} returned an array of shape {array.shape}. {expected}")
        if array.dtype.kind not in ("iub" if self.is_integer else "iuf"):
            raise GoalreelError(f"{source} returned {array.dtype}. {expected}")
        rows = array.astype(np.int64 if self.is_integer else self.dtype).reshape(num_envs, -1)
        # Stable-Baselines3 scales actions to bounds, and may round past them.
        largest = np.maximum(np.abs(self.low), np.abs(self.high)).astype(self.dtype)
        slack = 0 if self.is_integer else np.nan_to_num(np.spacing(largest))
        wrong = ~((rows >= self.low - slack) & (rows <= self.high + slack)).all(axis=1)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise GoalreelError(
                f"{source} returned {array[row].tolist()} in row {row}, which is not in the action "
                f"space. {expected}"
            )
        return rows.astype(self.stored_dtype).reshape(num_envs, *self.stored_shape)

    def to_gymnasium(self, action: np.ndarray) -> object:
        """Return a stored action in the form that the environment's `step` takes."""
        if not self.shape and self.is_integer:
            return int(action)
        return np.asarray(action).astype(self.dtype).reshape(self.shape)


def action_space(space, env: str) -> ActionSpace:
    """Return a Gymnasium action space as a box. Raises GoalreelError for other spaces."""
    from gymnasium import spaces

    if isinstance(space, spaces.Discrete):
        low, high = space.start, space.start + space.n - 1
    elif isinstance(space, spaces.MultiDiscrete):
        low, high = space.start, space.start + space.nvec - 1
    elif isinstance(space, spaces.MultiBinary):
        low, high = np.zeros(space.shape), np.ones(space.shape)
    elif isinstance(space, spaces.Box):
        low, high = space.low, space.high
    else:
        raise GoalreelError(
            f"env: {env!r} has the action space {space}. Make it a Discrete, MultiDiscrete, "
            f"MultiBinary or Box with a wrapper (env_wrappers)."
        )
    wide = np.int64 if space.dtype.kind in "iub" else np.float64
    low, high = (np.asarray(bound).astype(wide).reshape(-1) for bound in (low, high))
    return ActionSpace(space.shape, space.dtype.type, low, high)
