"""Rendering: the frames of a shard of Mountain Car, each state's looked up in the atlas."""

import numpy as np

from goalreel.pictures.atlas import Atlas, state_keys
from goalreel.pictures.frame_cache import FrameCache
from goalreel.pictures.layers import Layer, cut_patches, join
from goalreel.pictures.styles import Style
from goalreel.provenance.spec import Spec
from goalreel.simulation.trajectories import Trajectories


def render_states(trajectories: Trajectories, atlas: Atlas, style: Style, spec: Spec) -> FrameCache:
    """Return the frames of a shard: one per state, each episode's reset state first."""
    keys = state_keys(trajectories.states, trajectories.offsets, style)
    pictures = atlas.find(keys)
    patches = atlas.patches
    missing = pictures < 0
    if missing.any():
        # Rounding at a pixel's border can give a key that the atlas's search did not meet.
        extra, which = np.unique(keys[missing], axis=0, return_inverse=True)
        pictures[missing] = len(patches) + which.reshape(-1)
        patches = join([patches, cut_patches(atlas.background, style.draw(extra)[1])])
    used, index = np.unique(pictures, return_inverse=True)
    car = Layer("car", patches.take(used), index.astype(np.int32))
    return FrameCache(atlas.background, (car,), trajectories.offsets, trajectories.digest(), spec)
