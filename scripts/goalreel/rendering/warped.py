"""Mountain Car frames as a network sees them: what `env.render()` returns, warped."""

from dataclasses import replace
from functools import cache

import numpy as np

from goalreel.arrays import paste
from goalreel.environments.environment import Environment
from goalreel.environments.registry import describe
from goalreel.policies.preprocessing import WARPS
from goalreel.rendering.atlas import key_bytes
from goalreel.rendering.gymnasium_style import draw_frames, keys


class WarpedFrames:
    """The frames of a Mountain Car, each rendered and warped when it first occurs."""

    def __init__(self, env: str, warp: str):
        """Start without frames. warp: a name in `preprocessing.WARPS`."""
        self._env, self._warp = env, WARPS[warp]
        self._frames: dict[bytes, np.ndarray] = {}  # by key

    def observe(self, positions: np.ndarray) -> np.ndarray:
        """Return the observations at `positions`, (n,) float64, as (n, 84, 84) uint8."""
        found = keys(positions)
        names = key_bytes(found)
        pairs = zip(names, found, strict=True)
        new = {name: key for name, key in pairs if name not in self._frames}
        if new:
            background, boxes = draw_frames(self._env, np.stack(list(new.values())))
            for name, (top, left, pixels) in zip(new, boxes, strict=True):
                self._frames[name] = self._warp(paste(background.copy(), pixels, top, left))
        return np.stack([self._frames[name] for name in names])


warped_frames = cache(WarpedFrames)  # one instance per process and warp


def with_network_view(environment: Environment, warp: str) -> Environment:
    """Return an environment in which a Mountain Car shows warped frames, as a network sees them."""
    if not describe(environment.id).has_atlas:
        return environment
    frames = warped_frames(environment.id, warp)
    return replace(environment, observe=lambda states: frames.observe(states[0]))
