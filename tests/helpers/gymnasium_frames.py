"""Frames that Gymnasium renders, as the reference of every frame test."""

from collections.abc import Iterable, Iterator

import gymnasium
import numpy as np
from conftest import CONTINUOUS


def played(env: str, seed: int, actions: Iterable, **kwargs) -> Iterator[np.ndarray]:
    """Yield the frames of an episode that Gymnasium resets, steps and renders.

    `kwargs` are those of `gymnasium.make`.
    """
    made = gymnasium.make(env, render_mode="rgb_array", **kwargs)
    made.reset(seed=seed)
    yield made.render()
    for action in actions:
        if env == CONTINUOUS:
            action = np.array([action])
        made.step(action if np.ndim(action) else int(action))
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
