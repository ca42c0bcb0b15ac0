"""What plays and what is learned from it: epsilon-greedy steps, and the transitions they give.

Here a training's own process plays; player_process has the same in a process beside it.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from goalreel.training.dqn.replay_buffer import Batch
from goalreel.training.dqn.settings import Settings
from goalreel.training.games.car_lanes import Lanes, Step, WrappedCars

Values = Callable[[np.ndarray], np.ndarray]
"""The values of actions, (n, 3), for (n, 2) float32 observations."""


@dataclass(frozen=True)
class Played:
    """A step of all lanes: what was seen, (lanes, 2) float32, and done, (lanes,) int8.

    epsilon: the share of random actions; waiting: steps that are played and not yet learned from,
    this one among them, where playing has a process of its own
    """

    seen: np.ndarray
    actions: np.ndarray
    step: Step
    epsilon: float
    waiting: int = 0


class Player:
    """Plays when it is asked."""

    def __init__(self, settings: Settings, seed: int, values: Values, dice: np.random.Generator):
        """Reset all lanes."""
        self._settings, self._values, self._dice = settings, values, dice
        self._cars, self._frame = cars_of(settings, seed), 0
        self._seen = self._cars.seen

    def __enter__(self) -> "Player":
        """Begin."""
        return self

    def __exit__(self, *_) -> None:
        """End; there is nothing to give back."""

    def next(self) -> Played:
        """Play a step of all lanes."""
        epsilon = epsilon_at(self._settings, self._frame)
        actions = choose(self._values, self._seen, epsilon, self._dice)
        step = self._cars.step(actions)
        played = Played(self._seen, actions, step, epsilon)
        self._seen, self._frame = step.seen, self._frame + step.frames
        return played

    def learned(self, weights: Callable[[], dict[str, np.ndarray]]) -> None:
        """Take note of new weights: `values` has them already."""

    def resting(self) -> contextlib.AbstractContextManager:
        """Return a context in which nothing is played: it is but asked."""
        return contextlib.nullcontext()


def cars_of(settings: Settings, seed: int) -> Lanes | WrappedCars:
    """Return the environments of a training."""
    kind = WrappedCars if settings.wrapped else Lanes
    return kind(seed, settings.lanes, settings.skip)


def epsilon_at(settings: Settings, frame: int) -> float:
    """Return the share of random actions: from 1 down to `final_epsilon`, then as it is."""
    progress = min(frame / (settings.exploration * settings.frames), 1.0)
    return 1.0 + progress * (settings.final_epsilon - 1.0)


def choose(
    values: Values, seen: np.ndarray, epsilon: float, generator: np.random.Generator
) -> np.ndarray:
    """Return the lanes' actions, (lanes,) int8, each random with probability epsilon.

    values: not asked where all are random
    """
    random = generator.random(len(seen)) < epsilon
    actions = generator.integers(3, size=len(seen), dtype=np.int8)
    if not random.all():
        actions[~random] = values(seen[~random]).argmax(axis=1)
    return actions


def transitions(played: Played, discount: float) -> Batch:
    """Return what a step of all lanes teaches; a time limit ends no episode's value.

    discount: of one step of an environment, so its power for an action that lasted several
    """
    step = played.step
    discounts = np.where(step.terminated, 0.0, discount**step.lasted)
    return Batch(
        played.seen,
        played.actions.astype(np.int64),
        step.rewards.astype(np.float32),
        step.after,
        discounts.astype(np.float32),
    )
