"""The frames of a cache at a smaller size, as the encoder takes them; a picture is scaled once.

A frame equals what Pillow makes of the whole frame: Lanczos, first along the rows, then along the
columns. Of patches over a background only what differs is scaled; what Gymnasium has drawn is
scaled whole.
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

_REACH = 3  # pixels to each side of a scaled one that Lanczos takes into account
_KEPT_BYTES = 192 << 20  # bytes of drawn pictures that are kept, at most


class ScaledFrames:
    """The frames of a cache of a single layer at another size."""

    def __init__(self, cache: FrameCache, size: tuple[int, int], kept: dict):
        """Scale the background.

        Args:
            cache: the frames.
            size: the width and height of scaled ones: even, and not larger.
            kept: scaled pictures by their content, which several caches may share.
        """
        (layer,) = cache.layers
        self._cache, self._size, self._kept = cache, size, kept
        # In two calls, since in one Pillow 13 chooses the order of the passes by the size (its
        # pull request 9549), and the parts of a frame would no longer fit together.
        self._narrow = _resized(cache.background, size[0], len(cache.background))
        self._background = _resized(self._narrow, *size)
        self._identity = hashlib.sha256(cache.background).digest()
        self._index = layer.index.tolist()
        self._patches = None if isinstance(layer, BlockLayer) else layer.patches
        self._digests = self._patches.digests() if self._patches else []
        self._planes = planar(self._background)
        self._max_kept = math.inf if self._patches else _KEPT_BYTES // self._planes.size

    def frames(self, which: range) -> Iterator[np.ndarray]:
        """Yield frames as Yuv420p.frames."""
        (layer,), cache = self._cache.layers, self._cache
        if isinstance(layer, BlockLayer):  # a group is read once, whatever else is shown meanwhile
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
        """Return what lies over the background on a frame, as patch_planes has it."""
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
            cut = cut_patches(self._background, [self._scaled(pixels, *box)])
            (self._kept[key],) = patch_planes(cut)
        return self._kept[key]

    def _scaled(
        self, frame: np.ndarray, start: int, first: int, tall: int, broad: int
    ) -> tuple[int, int, np.ndarray]:
        """Scale the rows of a box that differs, then its columns: its top, its left, its pixels."""
        (height, width), (wide, high) = frame.shape[:2], self._size
        top, bottom = _reach(start, tall, height, high)
        left, right = _reach(first, broad, width, wide)
        columns = self._narrow[:, left:right].copy()
        rows = frame[start : start + tall]
        columns[start : start + tall] = _resized(rows, wide, tall)[:, left:right]
        return top, left, _resized(columns, right - left, high)[top:bottom]


def _reach(start: int, length: int, source: int, target: int) -> tuple[int, int]:
    """Return the first scaled pixel that depends on `length` source pixels, and the end of them.

    Both even: what lies between them is opaque, and 2x2 pixels share a chroma sample.
    """
    first = start * target // source - _REACH - 1
    end = -(-(start + length) * target // source) + _REACH + 1
    return max(first, 0) & ~1, min((end + 1) & ~1, target)


def _resized(pixels: np.ndarray, width: int, height: int) -> np.ndarray:
    """Return (h, w, 3) uint8 pixels at another width and height."""
    if pixels.shape[:2] == (height, width):
        return pixels
    image = Image.fromarray(np.ascontiguousarray(pixels))
    return np.asarray(image.resize((width, height), Image.Resampling.LANCZOS))
