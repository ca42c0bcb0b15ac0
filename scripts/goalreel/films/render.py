"""Render the frames of a shard from its states in the atlas, or from the poses of MuJoCo."""

import itertools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from goalreel.cli import ProgressLog
from goalreel.environments.drawing.mujoco_scene import renders_again, set_poses
from goalreel.environments.environment import make_environment
from goalreel.environments.gymnasium_instance import Instance, close_instance
from goalreel.files import npz
from goalreel.provenance.spec import Spec
from goalreel.rendering.atlas import Atlas, state_keys
from goalreel.rendering.blocks import BlockRecorder
from goalreel.rendering.frame_cache import FrameCache, FrameCacheWriter
from goalreel.rendering.gymnasium_style import draw_frames
from goalreel.rendering.layers import Layer, cut_patches, join
from goalreel.simulation.trajectories import Trajectories


def render_states(trajectories: Trajectories, atlas: Atlas, env: str, spec: Spec) -> FrameCache:
    """Return the frames of a shard, one per state; each episode starts with its reset state."""
    images, atlas = find_images(state_keys(trajectories, env), atlas, env)
    used, index = np.unique(images, return_inverse=True)
    car = Layer("car", atlas.patches.take(used), index.astype(np.int32))
    return FrameCache(atlas.background, (car,), trajectories.offsets, trajectories.digest(), spec)


@renders_again
def render_poses(path: Path, trajectories: Trajectories, config: Mapping, spec: Spec) -> int:
    """Write the frames that MuJoCo draws of a shard's poses, and return their number."""
    # config: the stage's, with the options of its environment
    environment, shown, log = make_environment(config), trajectories.poses, ProgressLog()
    with npz.writing(path) as add:
        writer = FrameCacheWriter(add, path.parent)
        ranges = itertools.pairwise(trajectories.offsets.tolist())
        seeds = trajectories.episodes.seed.tolist()
        for episode, ((first, last), seed) in enumerate(zip(ranges, seeds, strict=True)):
            recorder, groups = BlockRecorder(), []
            # A camera starts at the first poses that its instance draws.
            instance = Instance(environment, seed)
            for step in range(first, last):
                set_poses(instance.env.unwrapped, shown[step])
                groups += recorder.add(instance.frame())
                log.update(episode, step + 1)
            close_instance(instance.env)
            writer.add([*groups, *recorder.flush()])
        writer.finish(np.arange(len(trajectories)), trajectories.digest(), spec)
    return len(shown)


def find_images(keys: np.ndarray, atlas: Atlas, env: str) -> tuple[np.ndarray, Atlas]:
    """Return the image index of each key, (n,) int64, and an atlas that contains all of them."""
    # Rounding at the edge of a pixel can give a key that the atlas lacks. It is added.
    images = atlas.find(keys)
    if (images >= 0).all():
        return images, atlas
    extra = np.unique(keys[images < 0], axis=0)
    patches = join([atlas.patches, cut_patches(atlas.background, draw_frames(env, extra)[1])])
    atlas = replace(atlas, keys=np.concatenate([atlas.keys, extra]), patches=patches)
    return atlas.find(keys), atlas
