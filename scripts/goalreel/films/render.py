"""Render the frames of a Mountain Car shard by looking up each state in the atlas."""

from dataclasses import replace

import numpy as np

from goalreel.provenance.spec import Spec
from goalreel.rendering.atlas import Atlas, state_keys
from goalreel.rendering.frame_cache import FrameCache
from goalreel.rendering.gymnasium_style import GymnasiumStyle
from goalreel.rendering.layers import Layer, cut_patches, join
from goalreel.simulation.trajectories import Trajectories


def render_states(
    trajectories: Trajectories, atlas: Atlas, style: GymnasiumStyle, spec: Spec
) -> FrameCache:
    """Return the frames of a shard, one per state; each episode starts with its reset state."""
    keys = state_keys(trajectories, style)
    images, atlas = find_images(keys, atlas, style)
    used, index = np.unique(images, return_inverse=True)
    car = Layer("car", atlas.patches.take(used), index.astype(np.int32))
    return FrameCache(atlas.background, (car,), trajectories.offsets, trajectories.digest(), spec)


def find_images(keys: np.ndarray, atlas: Atlas, style: GymnasiumStyle) -> tuple[np.ndarray, Atlas]:
    """Return the image index of each key, (n,) int64, and an atlas that contains all of them.

    Rounding at the edge of a pixel can give a key that the atlas lacks. Such images are rendered
    and appended.
    """
    images = atlas.find(keys)
    if (images >= 0).all():
        return images, atlas
    extra = np.unique(keys[images < 0], axis=0)
    patches = join([atlas.patches, cut_patches(atlas.background, style.draw(extra)[1])])
    atlas = replace(atlas, keys=np.concatenate([atlas.keys, extra]), patches=patches)
    return atlas.find(keys), atlas
