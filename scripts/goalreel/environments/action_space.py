"""Action spaces as boxes of numbers: what an action of an environment may be.

Discrete, MultiDiscrete and MultiBinary are boxes of whole numbers. So one form says how an action
is stored, drawn at random and checked, and Gymnasium itself is not needed for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from goalreel.errors import GoalreelError


@dataclass(frozen=True)
class ActionSpace:
    """A box of actions."""

    shape: tuple[int, ...]  # of one action; () for a single number that is no array (Discrete)
    dtype: type  # that Gymnasium's environment takes, an integer or float type
    low: np.ndarray  # (numbers of an action,), the least values allowed
    high: np.ndarray  # (numbers of an action,), the greatest values allowed, included
    scalar_dtype: type | None = None  # if set, an action is stored as one number of this dtype

    @property
    def whole(self) -> bool:
        """Whether the actions are whole numbers."""
        return np.dtype(self.dtype).kind in "iub"

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """The shape of an action as the trajectory file holds it: () or (numbers,)."""
        return (len(self.low),) if self.shape and not self.scalar_dtype else ()

    @property
    def stored_dtype(self) -> type:
        """The dtype of an action as the trajectory file holds it."""
        return self.scalar_dtype or (np.int64 if self.whole else self.dtype)

    def __str__(self) -> str:
        """Return the space in words, for messages."""
        low, high = (", ".join(dict.fromkeys(f"{x:g}" for x in v)) for v in (self.low, self.high))
        kind = "whole numbers" if self.whole else "floats"
        return f"{kind} from {low} to {high}, of shape {self.shape} each"

    def check_bounds(self) -> None:
        """Raise GoalreelError if the space has no bounds, between which to draw."""
        if not (np.isfinite(self.low).all() and np.isfinite(self.high).all()):
            raise GoalreelError(
                f"policy.name: 'random' draws uniformly, but the actions have no bounds ({self})"
            )

    def scaled(self, draws: Sequence[np.ndarray]) -> np.ndarray:
        """Return uniformly random actions, (num_envs, *stored_shape).

        draws: for each number of an action, (num_envs,) doubles in [0, 1).
        """
        unit = np.stack(draws, axis=1)
        if self.whole:
            chosen = self.low + np.floor(unit * (self.high - self.low + 1))
        else:
            chosen = self.low + unit * (self.high - self.low)
        return chosen.astype(self.stored_dtype).reshape(len(unit), *self.stored_shape)

    def checked(self, actions: object, num_envs: int, who: str) -> np.ndarray:
        """Return a batch of actions from elsewhere as (num_envs, *stored_shape) of `stored_dtype`.

        Args:
            actions: should be (num_envs, *shape) of a fitting kind within the bounds.
            num_envs: how many actions are expected.
            who: what the actions came from, which begins the error's message.

        Raises:
            GoalreelError: they are not.
        """
        shape = (num_envs, *self.shape)
        expected = f"expected: {num_envs} actions, {self}, as an array of shape {shape}"
        try:
            array = np.asarray(actions)
        except ValueError as error:  # rows of unlike lengths
            raise GoalreelError(f"{who} returned no array ({error}); {expected}") from None
        if array.shape != shape:
            raise GoalreelError(f"{who} returned an array of shape {array.shape}; {expected}")
        if array.dtype.kind not in ("iub" if self.whole else "iuf"):
            raise GoalreelError(f"{who} returned {array.dtype}; {expected}")
        rows = array.astype(np.int64 if self.whole else self.dtype).reshape(num_envs, -1)
        wrong = ~((rows >= self.low) & (rows <= self.high)).all(axis=1)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise GoalreelError(
                f"{who} returned {array[row].tolist()} in row {row}, which is not in the action "
                f"space; {expected}"
            )
        return rows.astype(self.stored_dtype).reshape(num_envs, *self.stored_shape)

    def taken(self, action: np.ndarray) -> object:
        """Return a stored action as the environment's `step` takes it."""
        if not self.shape and self.whole:
            return int(action)
        return np.asarray(action).astype(self.dtype).reshape(self.shape)


def action_space(space, env: str) -> ActionSpace:
    """Return a Gymnasium action space as a box. Raises GoalreelError for one of another kind."""
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
            f"{env}: its action space is {space}; allowed: Discrete, MultiDiscrete, MultiBinary, "
            "Box"
        )
    wide = np.int64 if space.dtype.kind in "iub" else np.float64
    low, high = (np.asarray(bound).astype(wide).reshape(-1) for bound in (low, high))
    return ActionSpace(space.shape, space.dtype.type, low, high)
