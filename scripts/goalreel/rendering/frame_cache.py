"""The frame cache: what is on every frame of a shard, in a few bytes a frame.

A frame is a picture with each layer's patch pasted over it, in order. The picture is the same
background everywhere, or, where Gymnasium draws, told by the blocks that changed. The file is a
compressed .npz without objects:

    kind, version     "frames" and the version of this layout
    spec              JSON: how the file was made
    source            digest of the trajectories that it shows, "" for frames from elsewhere
    offsets           (episodes + 1,) int64: episode e is frames offsets[e]:offsets[e + 1]

and with a background

    background        (H, W, 3) uint8
    layers            (layers,) names, in the order of pasting; and for each of them
    NAME_boxes        (patches, 4) int32: top, left, height, width
    NAME_pixels       (pixels, 3) uint8, the patches' pixels end to end
    NAME_index        (frames,) int32: the frame's patch, or -1 for none

or with drawn pictures, in groups that stand alone (see blocks.py)

    size              (2,) int64: H and W of the max_frame_size picture
    sizes             (groups, 2) int64: H and W of each group's, where they differ
    groups            (groups, 2) int64: the first frame of each, in order, and its number N;
                      an episode begins with a group; and for each of them
    changes_N         (3, n) int32: the frame, counted in the group, the place, counted along the
                      rows of blocks, and the number of the block that is there from then on
    blocks_N          (m, 16, 16, 3) uint8
"""

import os
from collections.abc import Callable, Iterable, Iterator
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
_GROUPS = 4  # that are kept of a file: neighbours, and those of several readers


@dataclass(frozen=True)
class FrameCache:
    """The frames of a shard. `cache[i]` is (H, W, 3) uint8, `cache[a:b]` is (n, H, W, 3)."""

    background: np.ndarray  # (H, W, 3) uint8; the first picture where pictures are drawn
    layers: tuple[Layer | BlockLayer, ...]  # in the order of pasting
    offsets: np.ndarray  # (episodes + 1,) int64, where each episode's frames start
    source: str = ""  # digest of the trajectories that it shows
    spec: Spec = NO_SPEC  # how it was made
    sizes: list[list[int]] | None = None  # least and most H and W of drawn pictures

    def __len__(self) -> int:
        """Return the number of frames."""
        return int(self.offsets[-1])

    def __getitem__(self, which: int | slice) -> np.ndarray:
        """Return one frame, or the frames of a slice."""
        chosen = range(len(self))[which]
        if not isinstance(which, slice):
            return self._compose(chosen)
        frames = np.empty((len(chosen), *self.background.shape), np.uint8)
        for row, frame in enumerate(chosen):
            frames[row] = self._compose(frame)
        return frames

    def __iter__(self) -> Iterator[np.ndarray]:
        """Yield every frame, each an array of its own."""
        return map(self._compose, range(len(self)))

    def episode(self, index: int) -> range:
        """Return the numbers of an episode's frames."""
        return range(int(self.offsets[index]), int(self.offsets[index + 1]))

    def _compose(self, frame: int) -> np.ndarray:
        picture = self.background.copy()
        for layer in self.layers:
            layer.paste(picture, frame)
        return picture


def write_cache(path: str | os.PathLike, cache: FrameCache) -> None:
    """Write a frame cache with a background; the same cache gives the same bytes."""
    arrays = _header(cache.spec, cache.source, cache.offsets) | {
        "background": cache.background,
        "layers": np.array([layer.name for layer in cache.layers], dtype=np.str_),
    }
    for layer in cache.layers:
        arrays[f"{layer.name}_boxes"] = layer.patches.boxes
        arrays[f"{layer.name}_pixels"] = layer.patches.pixels
        arrays[f"{layer.name}_index"] = layer.index
    npz.write(path, arrays)


class FrameCacheWriter:
    """A frame cache of drawn pictures while it is written, an episode at a time.

    The episodes may come in any order; `finish` says where in the film they stand.
    """

    def __init__(self, add: Callable[[str, np.ndarray], None], folder: Path):
        """Begin without an episode; add: of npz.writing; folder: where the file will be."""
        self._add, self.folder = add, folder
        self._episodes: list[list[int]] = []  # the frames of each group
        self._sizes: list[tuple[int, int]] = []  # of each group

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
        """Write what tells the groups' order.

        Args:
            order: (episodes,) the film's episodes, by their numbers in the order of their coming.
            source: the digest of the trajectories that they show.
            spec: how the frames are made.
        """
        counts = np.array([len(lengths) for lengths in self._episodes])
        numbers = ranges((np.cumsum(counts) - counts)[order], counts[order])
        lengths = np.concatenate([np.array(self._episodes[e]) for e in order])
        frames = [sum(self._episodes[e]) for e in order]
        offsets = np.concatenate([[0], np.cumsum(frames)])
        sizes = np.array(self._sizes)[numbers]
        arrays = _header(spec, source, offsets) | {
            "size": sizes.max(axis=0),
            "groups": np.stack([np.cumsum(lengths) - lengths, numbers], axis=1),
        }
        arrays |= {"sizes": sizes} if (sizes != sizes[0]).any() else {}
        for name, array in arrays.items():
            self._add(name, array)


def max_frame_size(paths: Iterable[Path]) -> tuple[int, int]:
    """Return H and W that the drawn pictures of all these caches fit in.

    Raises GoalreelError, naming the file, if one cannot be used.
    """
    return tuple(np.max([npz.read(p, _KIND, VERSION, ["size"])["size"] for p in paths], axis=0))


def open_cache(path: str | os.PathLike, size: tuple[int, int] = (0, 0)) -> FrameCache:
    """Read a frame cache; drawn pictures are read from the file as they are needed.

    Args:
        path: the file.
        size: the least H and W of drawn frames. Smaller pictures are padded below and to the right
            with black, as all are to the max_frame_size of the file.

    Raises:
        GoalreelError: the file, which it names, cannot be used.
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

        pictures = BlockLayer("picture", size, ends, group, np.arange(offsets[-1]))
        background = pictures.group(0).compose(0, pictures.size)
        limits = np.stack([sizes.min(axis=0), sizes.max(axis=0)]).tolist()
        return FrameCache(background, (pictures,), offsets, source, spec, limits)
    layers = []
    for name in arrays["layers"].tolist():
        patches = Patches(arrays[f"{name}_boxes"], arrays[f"{name}_pixels"])
        layers.append(Layer(name, patches, arrays[f"{name}_index"]))
    return FrameCache(arrays["background"], tuple(layers), offsets, source, spec)


def _header(spec: Spec, source: str, offsets: np.ndarray) -> dict[str, np.ndarray]:
    return npz.header(_KIND, VERSION) | {
        "spec": np.array(spec.text),
        "source": np.array(source),
        "offsets": np.asarray(offsets, np.int64),
    }
