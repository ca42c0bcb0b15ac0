"""The styles that pictures are drawn in: what one offers, and which there are.

A style knows which picture a position gives (its *key*, a few small integers) and how to draw
pictures from their keys.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol

import numpy as np

from goalreel.environments.registry import MOUNTAIN_CARS, describe
from goalreel.errors import GoalreelError
from goalreel.rendering.gymnasium_drawing import GymnasiumStyle
from goalreel.rendering.vector_style import VectorStyle


class Style(Protocol):
    """What the pictures of an environment look like.

    env: the environment
    float32_states: whether a key depends on the precision of Gymnasium's state, which turns
    float32 at the first step in MountainCarContinuous-v0
    """

    env: str
    float32_states: bool

    def keys(self, positions: np.ndarray) -> np.ndarray:
        """Return the keys, (n, k) int64, of `positions`, (n,) float64 or float32."""

    def all_keys(self) -> np.ndarray:
        """Return every key that a position can give: (pictures, k) int64, sorted, in int16."""

    def draw(self, keys: np.ndarray) -> tuple[np.ndarray, Iterator[tuple[int, int, np.ndarray]]]:
        """Draw the empty track and the car at each of `keys`, (n, k) integers.

        Returns the track, (H, W, 3) uint8, and an iterator of (top, left, pixels): a box of the
        picture, (h, w, 3) uint8, outside of which it equals the track.
        """


def make_style(env: str, render: Mapping) -> Style:
    """Return the style of an environment's pictures.

    render: that section of the configuration: style, width, height, palette. Raises GoalreelError
    if the environment has no such style.
    """
    if not describe(env).has_atlas:
        raise GoalreelError(
            f"{env} has no atlas: swarm and the vector style show "
            f"{' and '.join(MOUNTAIN_CARS)} alone"
        )
    if render["style"] == "gymnasium":
        return GymnasiumStyle(env)
    if render["style"] == "vector":
        return VectorStyle(env, (render["width"], render["height"]), render["palette"])
    raise GoalreelError(f"unknown style {render['style']!r}; allowed: gymnasium, vector")
