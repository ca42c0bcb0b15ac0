"""Render the frames of a Mountain Car shard by looking up each state in the atlas."""

from dataclasses import replace

import numpy as np

from goalreel.provenance.spec import Spec
from goalreel.rendering.atlas import Atlas, Style, state_keys
from goalreel.rendering.frame_cache import FrameCache
from goalreel.rendering.layers import Layer, cut_patches, join
from goalreel.simulation.trajectories import Trajectories


def render_states(trajectories: Trajectories, atlas: Atlas, style: Style, spec: Spec) -> FrameCache:
    """Return the frames of a shard, one per state; each episode starts with its reset state."""
    keys = state_keys(trajectories, style)
    pictures, atlas = find_pictures(keys, atlas, style)
    used, index = np.unique(pictures, return_inverse=True)
    car = Layer("car", atlas.patches.take(used), index.astype(np.int32))
    return FrameCache(atlas.background, (car,), trajectories.offsets, trajectories.digest(), spec)


def find_pictures(keys: np.ndarray, atlas: Atlas, style: Style) -> tuple[np.ndarray, Atlas]:
    """Return the picture number of each key, (n,) int64, and an atlas that contains all of them.

    Rounding at the edge of a pixel can give a key that the atlas lacks. Such pictures are rendered
    and appended.
    """
    pictures = atlas.find(keys)
    if (pictures >= 0).all():
        return pictures, atlas
    extra = np.unique(keys[pictures < 0], axis=0)
    patches = join([atlas.patches, cut_patches(atlas.background, style.draw(extra)[1])])
    atlas = replace(atlas, keys=np.concatenate([atlas.keys, extra]), patches=patches)
    return atlas.find(keys), atlas
