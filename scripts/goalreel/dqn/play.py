"""What plays and what is learned from it: epsilon-greedy steps, and the transitions they give."""

import numpy as np

from goalreel.dqn.environments import Lanes, Step, WrappedCars
from goalreel.dqn.replay import Batch
from goalreel.dqn.settings import Settings


def cars_of(settings: Settings, seed: int) -> Lanes | WrappedCars:
    """Return the environments of a training."""
    kind = WrappedCars if settings.wrapped else Lanes
    return kind(seed, settings.lanes, settings.skip)


def epsilon_at(settings: Settings, frame: int) -> float:
    """Return the share of random actions: from 1 down to `final_epsilon`, then as it is."""
    progress = min(frame / (settings.exploration * settings.frames), 1.0)
    return 1.0 + progress * (settings.final_epsilon - 1.0)


def choose(values, seen: np.ndarray, epsilon: float, generator: np.random.Generator) -> np.ndarray:
    """Return the lanes' actions, (lanes,) int8, each random with probability epsilon.

    values: the function that gives (n, 2) observations their values; not asked where all are random
    """
    random = generator.random(len(seen)) < epsilon
    actions = generator.integers(3, size=len(seen), dtype=np.int8)
    if not random.all():
        actions[~random] = values(seen[~random]).argmax(axis=1)
    return actions


def transitions(seen: np.ndarray, actions: np.ndarray, step: Step, discount: float) -> Batch:
    """Return what a step of all lanes teaches; a time limit ends no episode's value."""
    return Batch(
        seen,
        actions.astype(np.int64),
        step.rewards.astype(np.float32),
        step.after,
        np.where(step.terminated, np.float32(0), np.float32(discount)),
    )
