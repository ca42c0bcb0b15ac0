"""The frame cache: the frames of a shard, lossless and small.

`open_cache` returns a `FrameCache`, whose frames are composed when you index it. In Mountain Car a
frame is a background with one patch of each layer. Elsewhere a frame is stored as the blocks that
changed since the frame before (blocks.py). docs/reference/results.md describes the arrays.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from goalreel.arrays import ranges
from goalreel.files import npz
from goalreel.provenance.spec import NO_SPEC, Spec, parse_spec
from goalreel.rendering.blocks import BlockLayer, Group
from goalreel.rendering.layers import Layer, Patches

VERSION = 2
_KIND = "frames"
_GROUPS = 4  # groups of a file that stay in memory, for several readers


@dataclass(frozen=True)
class FrameCache:
    """The frames of a shard. `cache[i]` is (H, W, 3) uint8, `cache[a:b]` is (n, H, W, 3).

    Open one with `goalreel.open_cache`. It does not hold the frames: each is composed on demand.
    """

    background: np.ndarray  # (H, W, 3) uint8; the first image of a BlockLayer
    layers: tuple[Layer | BlockLayer, ...]  # in the order of pasting
    offsets: np.ndarray  # (episodes + 1,) int64, where each episode's frames start
    source: str = ""  # digest of the trajectories that it shows
    spec: Spec = NO_SPEC  # how it was made
    sizes: list[list[int]] | None = None  # smallest and largest (H, W) of a BlockLayer
    titles: "FrameCache | None" = None  # the title cards before its episodes, as an episode each

    def __len__(self) -> int:
        return int(self.offsets[-1])

    def __getitem__(self, which: int | slice) -> np.ndarray:
        chosen = range(len(self))[which]
        if isinstance(which, slice):
            frames = np.empty((len(chosen), *self.background.shape), np.uint8)
            for row, frame in enumerate(chosen):
                frames[row] = self[frame]
            return frames
        image = self.background.copy()
        for layer in self.layers:
            layer.paste(image, chosen)
        return image

    def episode(self, index: int) -> range:
        """Return the indices of an episode's frames. The first shows the reset state."""
        return range(int(self.offsets[index]), int(self.offsets[index + 1]))


def write_cache(path: str | os.PathLike, cache: FrameCache) -> None:
    """Write a frame cache with a background. Equal caches give equal bytes."""
    names = np.array([layer.name for layer in cache.layers], dtype=np.str_)
    arrays = _header(cache.spec, cache.source, cache.offsets)
    arrays |= {"background": cache.background, "layers": names}
    for layer in cache.layers:
        arrays[f"{layer.name}_boxes"] = layer.patches.boxes
        arrays[f"{layer.name}_pixels"] = layer.patches.pixels
        arrays[f"{layer.name}_index"] = layer.index
    npz.write(path, arrays)


class FrameCacheWriter:
    """Write a frame cache of blocks, one episode at a time, in any order."""

    def __init__(self, add: Callable[[str, np.ndarray], None], folder: Path):
        """Start without episodes. add: from npz.writing. folder: the file's folder."""
        self._add, self.folder = add, folder
        self._episodes: list[list[int]] = []  # per episode, the frames of each group
        self._sizes: list[tuple[int, int]] = []  # (H, W) of each group

    def add(self, groups: Iterable[Group]) -> None:
        """Write an episode's groups."""
        lengths = []
        for group in groups:
            self._add(f"changes_{len(self._sizes)}", group.changes)
            self._add(f"blocks_{len(self._sizes)}", group.blocks)
            self._sizes.append(group.size)
            lengths.append(group.count)
        self._episodes.append(lengths)

    def finish(self, order: np.ndarray, source: str, spec: Spec) -> None:
        """Write the groups' order and the header. order: the film's episodes among those added."""
        counts = np.array([len(lengths) for lengths in self._episodes])
        numbers = ranges((np.cumsum(counts) - counts)[order], counts[order])
        lengths = np.concatenate([np.array(self._episodes[e]) for e in order])
        frames = [sum(self._episodes[e]) for e in order]
        offsets = np.concatenate([[0], np.cumsum(frames)])
        sizes = np.array(self._sizes)[numbers]
        groups = np.stack([np.cumsum(lengths) - lengths, numbers], axis=1)
        arrays = _header(spec, source, offsets) | {"size": sizes.max(axis=0), "groups": groups}
        arrays |= {"sizes": sizes} if (sizes != sizes[0]).any() else {}
        for name, array in arrays.items():
            self._add(name, array)


def max_frame_size(paths: Iterable[Path]) -> tuple[int, int]:
    """Return the height and width of the largest image in all these caches."""
    return tuple(np.max([npz.read(p, _KIND, VERSION, ["size"])["size"] for p in paths], axis=0))


def open_cache(path: str | os.PathLike, size: tuple[int, int] = (0, 0)) -> FrameCache:
    """Open the frame cache of a shard, such as results/frames/00000.npz, to read it on demand.

    Smaller frames are padded with black below and to the right, to the largest of the file or to
    `size`, a height and a width. Raises GoalreelError, with the path, if the file is unusable.
    """
    arrays = npz.Reader(path, _KIND, VERSION)
    offsets, source = arrays["offsets"], str(arrays["source"])
    spec = parse_spec(str(arrays["spec"]), path)
    if "size" in arrays:
        sizes = arrays["sizes"] if "sizes" in arrays else arrays["size"][None]
        size = tuple(np.maximum(sizes.max(axis=0), size).tolist())
        starts, numbers = arrays["groups"].T
        ends = np.append(starts, offsets[-1])

        @lru_cache(_GROUPS)
        def group(index: int) -> Group:
            own = tuple(sizes[index % len(sizes)].tolist())
            parts = (arrays[f"{name}_{numbers[index]}"] for name in ("changes", "blocks"))
            return Group(own, int(ends[index + 1] - ends[index]), *parts).pad(size)

        images = BlockLayer("picture", size, ends, group, np.arange(offsets[-1]))
        background = images.group(0).compose(0, images.size)
        limits = np.stack([sizes.min(axis=0), sizes.max(axis=0)]).tolist()
        return FrameCache(background, (images,), offsets, source, spec, limits)
    layers = []
    for name in arrays["layers"].tolist():
        patches = Patches(arrays[f"{name}_boxes"], arrays[f"{name}_pixels"])
        layers.append(Layer(name, patches, arrays[f"{name}_index"]))
    return FrameCache(arrays["background"], tuple(layers), offsets, source, spec)


def _header(spec: Spec, source: str, offsets: np.ndarray) -> dict[str, np.ndarray]:
    arrays = npz.header(_KIND, VERSION) | {"spec": np.array(spec.text), "source": np.array(source)}
    return arrays | {"offsets": np.asarray(offsets, np.int64)}
