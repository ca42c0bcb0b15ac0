"""A frame cache's pictures at a smaller size, each scaled once and known by its content.

A frame is the scaled background with a picture pasted over it, as in the cache itself, and equals
what Pillow makes of the whole frame: Lanczos, first along the rows, then along the columns. Only
what differs from the background is scaled.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.pictures.frame_cache import FrameCache
from goalreel.pictures.layers import NOTHING, cut_patches

_REACH = 3  # pixels to each side of a scaled one that Lanczos takes into account
_ROOM = 256 << 20  # bytes of pictures that are kept


@dataclass(frozen=True, eq=False)
class Picture:
    """A box of scaled pixels."""

    box: tuple[int, int, int, int]  # top, left, height, width, all even
    pixels: np.ndarray  # (height * width, 3) uint8


class ScaledPictures:
    """The pictures of any number of frame caches with frames of one size."""

    def __init__(self, source: tuple[int, int], target: tuple[int, int], room: int = _ROOM):
        """Begin with none.

        Args:
            source: width and height of the frames.
            target: width and height of their pictures: even, and not larger.
            room: bytes of pictures that are kept.
        """
        self.source, self.target = source, target
        self._room = room
        self._size = 0
        self._pictures: OrderedDict[tuple[bytes, bytes], Picture] = OrderedDict()

    def of(self, cache: FrameCache) -> "ScaledCache":
        """Return a cache's frames, scaled. Raises GoalreelError if their size is another."""
        height, width = cache.background.shape[:2]
        if (width, height) != self.source:
            raise GoalreelError(
                f"frames of {width}x{height} pixels among those of {self.source[0]}x"
                f"{self.source[1]}; all frames of a view must be of one size"
            )
        return ScaledCache(cache, self)

    def find(self, content: tuple[bytes, bytes], scale: Callable[[], Picture]) -> Picture:
        """Return the picture of this content; if it is not kept, the one that scale() makes."""
        picture = self._pictures.get(content)
        if picture is None:
            picture = self._pictures[content] = scale()
            self._size += picture.pixels.nbytes
            while self._size > self._room and len(self._pictures) > 1:
                self._size -= self._pictures.popitem(last=False)[1].pixels.nbytes
        else:
            self._pictures.move_to_end(content)
        return picture


class ScaledCache:
    """The frames of one frame cache of a single layer, scaled."""

    def __init__(self, cache: FrameCache, pictures: ScaledPictures):
        """Scale the background of `cache`."""
        (layer,) = cache.layers
        self._cache, self._pictures, self._patches = cache, pictures, layer.patches
        # In two calls, since in one Pillow 13 chooses the order of the passes by the size (its
        # pull request 9549), and the parts of a frame would no longer fit together.
        self._narrow = _resized(cache.background, pictures.target[0], pictures.source[1])
        self.background = _resized(self._narrow, *pictures.target)  # (h, w, 3) uint8
        self._identity = hashlib.sha256(cache.background.tobytes()).digest()
        self._index, self._digests = layer.index.tolist(), layer.patches.digests()

    def picture(self, frame: int) -> Picture | None:
        """Return what lies over the background on a frame."""
        patch = self._index[frame]
        if patch == NOTHING or not self._patches.boxes[patch, 2:].all():
            return None
        content = self._identity, self._digests[patch]
        return self._pictures.find(content, lambda: self._scaled(patch))

    def _scaled(self, patch: int) -> Picture:
        """Scale the rows that differ, then the columns that differ, as of the whole frame."""
        frame = self._cache.background.copy()
        self._patches.paste(frame, patch)
        start, first, tall, broad = self._patches.boxes[patch].tolist()
        (width, height), (wide, high) = self._pictures.source, self._pictures.target
        top, bottom = _reach(start, tall, height, high)
        left, right = _reach(first, broad, width, wide)
        columns = self._narrow[:, left:right].copy()
        rows = frame[start : start + tall]
        columns[start : start + tall] = _resized(rows, wide, tall)[:, left:right]
        pixels = _resized(columns, right - left, high)[top:bottom]
        cut = cut_patches(self.background, [(top, left, pixels)])
        return Picture(tuple(cut.boxes[0].tolist()), cut.pixels)


def _reach(start: int, length: int, source: int, target: int) -> tuple[int, int]:
    """Return the first scaled pixel that depends on `length` source pixels, and the end of them.

    Both even: what lies between them is opaque, and 2x2 pixels share a chroma sample.
    """
    first = start * target // source - _REACH - 1
    end = -(-(start + length) * target // source) + _REACH + 1
    return max(first, 0) & ~1, min((end + 1) & ~1, target)


def _resized(pixels: np.ndarray, width: int, height: int) -> np.ndarray:
    """Return (h, w, 3) uint8 pixels at another width and height."""
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(pixels))
    return np.asarray(image.resize((width, height), Image.Resampling.LANCZOS))
