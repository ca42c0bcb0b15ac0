"""Rendering: from a shard's states to its frame cache, by look-up.

What the pictures are stands in styles, how they are stored in frame_cache.
"""

import json

import numpy as np

from goalreel.pictures.atlas import Atlas
from goalreel.pictures.frame_cache import FrameCache
from goalreel.pictures.layers import Layer, cut_patches, join
from goalreel.pictures.styles import Style
from goalreel.provenance.spec import check_alike
from goalreel.simulation.trajectories import Trajectories


def render_states(trajectories: Trajectories, atlas: Atlas, style: Style, spec: str) -> FrameCache:
    """Return the frames of a shard: one per state, each episode's reset state first.

    Raises GoalreelError if the trajectories or the atlas are of another environment, or the atlas
    is drawn otherwise than `spec` asks.
    """
    asked = json.loads(spec).get("config", {}) | {"env": style.env}
    check_alike(asked, "trajectories are", trajectories.spec)
    check_alike(asked, "atlas is", atlas.spec)
    wanted = state_keys(trajectories, style)
    pictures = atlas.find(wanted)
    patches = atlas.patches
    missing = pictures < 0
    if missing.any():
        # Rounding at a pixel's border can give a key that the atlas's search did not meet.
        extra, which = np.unique(wanted[missing], axis=0, return_inverse=True)
        pictures[missing] = len(patches) + which.reshape(-1)
        patches = join([patches, cut_patches(atlas.background, style.draw(extra)[1])])
    used, index = np.unique(pictures, return_inverse=True)
    car = Layer("car", patches.take(used), index.astype(np.int32))
    return FrameCache(atlas.background, (car,), trajectories.offsets, trajectories.digest(), spec)


def state_keys(trajectories: Trajectories, style: Style) -> np.ndarray:
    """Return each state's key, (states, k) int64, in the precision of Gymnasium's state."""
    positions = trajectories.states[:, 0]
    found = style.keys(positions.astype(np.float32) if style.float32_states else positions)
    resets = trajectories.offsets[:-1]
    if style.float32_states:  # the reset state alone is float64
        found[resets] = style.keys(positions[resets])
    return found
