"""The frame cache: what is on every frame of a shard, in a few bytes a frame.

A frame is the background with each layer's patch pasted over it, in order. The file is a
compressed .npz without objects:

    kind, version     "frames" and the version of this layout
    spec              JSON: how the file was made
    source            digest of the trajectories that it shows, "" for frames from elsewhere
    offsets           (episodes + 1,) int64: episode e is frames offsets[e]:offsets[e + 1]
    background        (H, W, 3) uint8
    layers            (layers,) names, in the order of pasting; and for each of them
    NAME_boxes        (patches, 4) int32: top, left, height, width
    NAME_pixels       (pixels, 3) uint8, the patches' pixels end to end
    NAME_index        (frames,) int32: the frame's patch, or -1 for none
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from goalreel.files import npz
from goalreel.pictures.layers import NOTHING, Layer, Patches
from goalreel.provenance.spec import NO_SPEC, Spec, parse_spec

VERSION = 1
_KIND = "frames"


@dataclass(frozen=True)
class FrameCache:
    """The frames of a shard. `cache[i]` is (H, W, 3) uint8, `cache[a:b]` is (n, H, W, 3)."""

    background: np.ndarray  # (H, W, 3) uint8
    layers: tuple[Layer, ...]  # in the order of pasting
    offsets: np.ndarray  # (episodes + 1,) int64, where each episode's frames start
    source: str = ""  # digest of the trajectories that it shows
    spec: Spec = NO_SPEC  # how it was made

    def __len__(self) -> int:
        """Return the number of frames."""
        return int(self.offsets[-1])

    def __getitem__(self, which: int | slice) -> np.ndarray:
        """Return one frame, or the frames of a slice."""
        if isinstance(which, slice):
            chosen = range(*which.indices(len(self)))
            frames = np.empty((len(chosen), *self.background.shape), np.uint8)
            for row, frame in enumerate(chosen):
                frames[row] = self._compose(frame)
            return frames
        if not -len(self) <= which < len(self):
            raise IndexError(f"frame {which} of a cache of {len(self)} frames")
        return self._compose(int(which) % len(self))

    def __iter__(self) -> Iterator[np.ndarray]:
        """Yield every frame, each an array of its own."""
        return map(self._compose, range(len(self)))

    def episode(self, index: int) -> range:
        """Return the numbers of an episode's frames."""
        return range(int(self.offsets[index]), int(self.offsets[index + 1]))

    def _compose(self, frame: int) -> np.ndarray:
        picture = self.background.copy()
        for layer in self.layers:
            patch = int(layer.index[frame])
            if patch != NOTHING:
                layer.patches.paste(picture, patch)
        return picture


def write_cache(path: str | os.PathLike, cache: FrameCache) -> None:
    """Write a frame cache; the same cache gives the same bytes."""
    arrays = npz.header(_KIND, VERSION) | {
        "spec": np.array(cache.spec.text),
        "source": np.array(cache.source),
        "offsets": np.asarray(cache.offsets, np.int64),
        "background": cache.background,
        "layers": np.array([layer.name for layer in cache.layers], dtype=np.str_),
    }
    for layer in cache.layers:
        arrays[f"{layer.name}_boxes"] = layer.patches.boxes
        arrays[f"{layer.name}_pixels"] = layer.patches.pixels
        arrays[f"{layer.name}_index"] = layer.index
    npz.write(path, arrays)


def open_cache(path: str | os.PathLike) -> FrameCache:
    """Read a frame cache. Raises GoalreelError, naming the file, if it cannot be used."""
    arrays = npz.read(path, _KIND, VERSION)
    layers = (
        Layer(
            name,
            Patches(arrays[f"{name}_boxes"], arrays[f"{name}_pixels"]),
            arrays[f"{name}_index"],
        )
        for name in arrays["layers"].tolist()
    )
    source, spec = str(arrays["source"]), parse_spec(str(arrays["spec"]), path)
    return FrameCache(arrays["background"], tuple(layers), arrays["offsets"], source, spec)
