"""Mountain Car's pictures as a network sees them: what `env.render()` draws, warped."""

from dataclasses import replace
from functools import cache

import numpy as np

from goalreel.environments.environment import Environment
from goalreel.environments.registry import describe
from goalreel.policies.preprocessing import WARPS, Warp
from goalreel.rendering.gymnasium_drawing import GymnasiumStyle
from goalreel.rendering.styles import Style


class WarpedPictures:
    """The pictures that an environment can show, each drawn and warped when it first occurs."""

    def __init__(self, style: Style, warp: Warp):
        """Begin without a picture."""
        self._style, self._warp = style, warp
        self._frames: dict[bytes, np.ndarray] = {}  # by their keys

    def observe(self, positions: np.ndarray) -> np.ndarray:
        """Return the observations at positions, (n,) float64: (n, 84, 84) uint8."""
        keys = self._style.keys(positions)
        names = list(map(bytes, keys))
        pairs = zip(names, keys, strict=True)
        new = {name: key for name, key in pairs if name not in self._frames}
        if new:
            self._draw(new)
        return np.stack([self._frames[name] for name in names])

    def _draw(self, keys: dict[bytes, np.ndarray]) -> None:
        background, drawn = self._style.draw(np.stack(list(keys.values())))
        for name, (top, left, pixels) in zip(keys, drawn, strict=True):
            frame = background.copy()
            frame[top : top + pixels.shape[0], left : left + pixels.shape[1]] = pixels
            self._frames[name] = self._warp(frame)


@cache
def warped_pictures(env: str, warp: str) -> WarpedPictures:
    """Return the pictures of a Mountain Car by a warp's name, which a process has once."""
    return WarpedPictures(GymnasiumStyle(env), WARPS[warp])


def watched(environment: Environment, warp: str) -> Environment:
    """Return an environment as a network is to see it: a Mountain Car shows warped pictures.

    What Gymnasium plays shows its own observations.
    """
    if not describe(environment.id).has_atlas:
        return environment
    pictures = warped_pictures(environment.id, warp)
    return replace(environment, observe=lambda states: pictures.observe(states[0]))
