"""Rendering: from a shard's states to its frame cache, by look-up.

What the pictures are stands in scene and drawing, how they are stored in frame_cache.
"""

import json

import numpy as np

from goalreel.atlas import Atlas
from goalreel.drawing import draw
from goalreel.errors import GoalreelError
from goalreel.frame_cache import FrameCache
from goalreel.layers import Layer, cut_patches, join
from goalreel.scene import Scene, keys
from goalreel.trajectories import Trajectories


def render_states(trajectories: Trajectories, atlas: Atlas, scene: Scene, spec: str) -> FrameCache:
    """Return the frames of a shard: one per state, each episode's reset state first.

    Raises GoalreelError if the trajectories or the atlas are of another environment.
    """
    for name, made in (("trajectories", trajectories.spec), ("atlas", atlas.spec)):
        env = json.loads(made).get("config", {}).get("env", scene.env)
        if env != scene.env:
            raise GoalreelError(f"the {name} are of {env}, not of {scene.env}; delete them")
    wanted = state_keys(trajectories, scene)
    pictures = atlas.find(wanted)
    patches = atlas.patches
    missing = pictures < 0
    if missing.any():
        # Rounding at a pixel's border can give a key that the atlas's search did not meet.
        extra, which = np.unique(wanted[missing], axis=0, return_inverse=True)
        pictures[missing] = len(patches) + which.reshape(-1)
        patches = join([patches, cut_patches(atlas.background, draw(scene, extra)[1])])
    used, index = np.unique(pictures, return_inverse=True)
    car = Layer("car", patches.take(used), index.astype(np.int32))
    return FrameCache(atlas.background, (car,), trajectories.offsets, trajectories.digest(), spec)


def state_keys(trajectories: Trajectories, scene: Scene) -> np.ndarray:
    """Return each state's key, (states, 12) int64, in the precision of Gymnasium's state."""
    positions = trajectories.states[:, 0]
    found = keys(positions.astype(np.float32) if scene.float32_states else positions)
    resets = trajectories.offsets[:-1]
    if scene.float32_states:  # the reset state alone is float64
        found[resets] = keys(positions[resets])
    return found
