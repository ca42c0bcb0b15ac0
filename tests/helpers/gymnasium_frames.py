"""Frames that Gymnasium renders, as the reference of every frame test."""

from collections.abc import Iterable, Iterator

import gymnasium
import numpy as np
from conftest import CONTINUOUS


def played(env: str, seed: int, actions: Iterable) -> Iterator[np.ndarray]:
    """Yield the frames of an episode that Gymnasium resets, steps and renders."""
    made = gymnasium.make(env, render_mode="rgb_array")
    made.reset(seed=seed)
    yield made.render()
    for action in actions:
        made.step(np.array([action]) if env == CONTINUOUS else int(action))
        yield made.render()
    made.close()


def drawn(env: str, states: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield the frame of each state, float64 or float32."""
    made = gymnasium.make(env, render_mode="rgb_array")
    made.reset(seed=0)
    for state in states:
        made.unwrapped.state = state
        yield made.render()
    made.close()
