"""The frames of a cache at a smaller size, in yuv420p, with each image scaled only once.

A frame equals the whole frame scaled by Pillow: Lanczos, first along the rows, then the columns.
`ScaledFrames` scales only the changed part of patches over a background, and other images whole.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np
from PIL import Image

from goalreel.encoding.yuv import patch_planes, planar, planes
from goalreel.rendering.blocks import BlockLayer
from goalreel.rendering.frame_cache import FrameCache
from goalreel.rendering.layers import cut_patches

_REACH = 3  # pixels on each side of a scaled one that Lanczos weighs
_KEPT_BYTES = 192 << 20  # bytes of scaled images in memory, at most


class ScaledFrames:
    """The frames of a cache with one layer, at another size."""

    def __init__(self, cache: FrameCache, size: tuple[int, int], kept: dict):
        """Scale to a width and height, even and not larger. kept: scaled images by content."""
        (layer,) = cache.layers
        self._cache, self._size, self._kept = cache, size, kept
        # In two calls: in one, Pillow 13 chooses the order of the passes by the size (pull request
        # 9549), and the parts of a frame would not fit together.
        self._narrow = _resize(cache.background, size[0], len(cache.background))
        self._background = _resize(self._narrow, *size)
        self._identity = hashlib.sha256(cache.background).digest()
        self._index = layer.index.tolist()
        self._patches = None if isinstance(layer, BlockLayer) else layer.patches
        self._digests = self._patches.digests() if self._patches else []
        self._planes = planar(self._background)
        self._max_kept = math.inf if self._patches else _KEPT_BYTES // self._planes.size

    def frames(self, which: range) -> Iterator[np.ndarray]:
        """Yield frames like Yuv420p.frames."""
        (layer,), cache = self._cache.layers, self._cache
        if isinstance(layer, BlockLayer):  # read a group only once
            layer = replace(layer, group=lru_cache(1)(layer.group))
            cache = replace(cache, layers=(layer,))
        buffer, parts = self._planes.copy(), ()
        canvas, clean = planes(buffer), planes(self._planes)
        for frame in which:
            for plane, below, (place, _) in zip(canvas, clean, parts, strict=False):
                plane[place] = below[place]
            parts = self._parts(cache, frame)
            for plane, (place, samples) in zip(canvas, parts, strict=False):
                plane[place] = samples
            yield buffer

    def _parts(self, cache: FrameCache, frame: int) -> tuple:
        """Return the patches over the background of a frame, like patch_planes."""
        number, patches = self._index[frame], self._patches
        if patches is None:
            pixels, box = cache[frame], (0, 0, *cache.background.shape[:2])
            key = self._identity, hashlib.sha256(pixels).digest()
        elif number < 0 or not patches.boxes[number, 2:].all():
            return ()
        else:
            pixels, box = None, patches.boxes[number].tolist()
            key = self._identity, self._digests[number]
        if key not in self._kept:
            if len(self._kept) >= self._max_kept:
                self._kept.pop(next(iter(self._kept)))
            pixels = cache[frame] if pixels is None else pixels
            cut = cut_patches(self._background, [self._scale_box(pixels, *box)])
            (self._kept[key],) = patch_planes(cut)
        return self._kept[key]

    def _scale_box(
        self, frame: np.ndarray, start: int, first: int, tall: int, broad: int
    ) -> tuple[int, int, np.ndarray]:
        """Scale a box that differs from the background; return its top, left and pixels."""
        (height, width), (wide, high) = frame.shape[:2], self._size
        top, bottom = _reach(start, tall, height, high)
        left, right = _reach(first, broad, width, wide)
        columns = self._narrow[:, left:right].copy()
        rows = frame[start : start + tall]
        columns[start : start + tall] = _resize(rows, wide, tall)[:, left:right]
        return top, left, _resize(columns, right - left, high)[top:bottom]


def _reach(start: int, length: int, source: int, target: int) -> tuple[int, int]:
    """Return the even range of scaled pixels that depend on `length` source pixels."""
    # It is even because the range is opaque, and 2x2 pixels share a chroma sample.
    first = start * target // source - _REACH - 1
    end = -(-(start + length) * target // source) + _REACH + 1
    return max(first, 0) & ~1, min((end + 1) & ~1, target)


def _resize(pixels: np.ndarray, width: int, height: int) -> np.ndarray:
    """Return pixels, (h, w, 3) uint8, scaled to another width and height."""
    if pixels.shape[:2] == (height, width):
        return pixels
    image = Image.fromarray(np.ascontiguousarray(pixels))
    return np.asarray(image.resize((width, height), Image.Resampling.LANCZOS))
