"""Mountain Car's pictures as a network sees them: what `env.render()` draws, warped."""

from dataclasses import replace
from functools import cache

import numpy as np

from goalreel.arrays import paste
from goalreel.environments.environment import Environment
from goalreel.environments.registry import describe
from goalreel.policies.preprocessing import WARPS
from goalreel.rendering.atlas import names_of
from goalreel.rendering.gymnasium_style import GymnasiumStyle


class WarpedPictures:
    """The pictures that a Mountain Car can show, each drawn and warped when it first occurs."""

    def __init__(self, env: str, warp: str):
        """Begin without a picture; warp: its name."""
        self._style, self._warp = GymnasiumStyle(env), WARPS[warp]
        self._frames: dict[bytes, np.ndarray] = {}  # by their keys

    def observe(self, positions: np.ndarray) -> np.ndarray:
        """Return the observations at positions, (n,) float64: (n, 84, 84) uint8."""
        keys = self._style.keys(positions)
        names = names_of(keys)
        new = {name: key for name, key in zip(names, keys, strict=True) if name not in self._frames}
        if new:
            background, drawn = self._style.draw(np.stack(list(new.values())))
            for name, (top, left, pixels) in zip(new, drawn, strict=True):
                self._frames[name] = self._warp(paste(background.copy(), pixels, top, left))
        return np.stack([self._frames[name] for name in names])


warped_pictures = cache(WarpedPictures)  # which a process has once


def watched(environment: Environment, warp: str) -> Environment:
    """Return an environment as a network is to see it: a Mountain Car shows warped pictures.

    What Gymnasium plays shows its own observations.
    """
    if not describe(environment.id).has_atlas:
        return environment
    pictures = warped_pictures(environment.id, warp)
    return replace(environment, observe=lambda states: pictures.observe(states[0]))
