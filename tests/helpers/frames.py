"""Frame caches of given frames, and of episodes that Gymnasium plays."""

from pathlib import Path

import numpy as np

from goalreel.files import npz
from goalreel.policies.policy import make_policy
from goalreel.provenance.spec import NO_SPEC
from goalreel.rendering.blocks import BlockRecorder
from goalreel.rendering.frame_cache import FrameCache, FrameCacheWriter, open_cache
from goalreel.rendering.frame_recorder import filming
from goalreel.rendering.layers import Layer, cut_patches, join
from goalreel.simulation.reaches import simulate_reaches
from goalreel.simulation.trajectories import Trajectories


def layer_of(name: str, background: np.ndarray, frames) -> Layer:
    """Return a layer that shows given frames over a background, one patch per frame."""
    patches = [cut_patches(background, [(0, 0, frame)]) for frame in frames]
    return Layer(name, join(patches), np.arange(len(patches), dtype=np.int32))


def film(
    path: Path, environment, reaches=range(3), success=-1e9, attempts=9, spec=NO_SPEC
) -> tuple[Trajectories, FrameCache]:
    """Return a shard's trajectories and frames of a random policy, rendered by Gymnasium."""
    player = make_policy({"name": "random"})
    with filming(path, environment, success) as recorder:
        made = simulate_reaches(
            reaches, 7, environment, player, attempts, False, spec, success, recorder
        )
        recorder.write(made.digest(), spec)
    return made, open_cache(path)


def groups_of(pictures):
    """Yield groups of frames, each with the number of its frames and their size."""
    recorder = BlockRecorder()
    for picture in pictures:
        yield from recorder.add(picture)
    yield from recorder.flush()


def drawn(path: Path, *episodes) -> FrameCache:
    """Return a frame cache of episodes' frames, (H, W, 3) uint8 each, all of one size."""
    with npz.writing(path) as add:
        frames = FrameCacheWriter(add, path.parent)
        for pictures in episodes:
            frames.add(groups_of(iter(pictures)))
        frames.finish(np.arange(len(episodes)), "", NO_SPEC)
    return open_cache(path)
