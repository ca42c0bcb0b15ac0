"""A frame cache's pictures at a smaller size, each scaled once and known by its content.

A frame is the scaled background with a picture pasted over it, and equals what Pillow makes of the
whole frame: Lanczos, first along the rows, then along the columns. Of a frame that is a patch over
a background only what differs is scaled; what Gymnasium has drawn is scaled whole.
"""

import hashlib
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.pictures.blocks import Drawn
from goalreel.pictures.frame_cache import FrameCache
from goalreel.pictures.layers import NOTHING, Layer, cut_patches

_REACH = 3  # pixels to each side of a scaled one that Lanczos takes into account
_ROOM = 96 << 20  # bytes of pictures that are kept


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
        (layer,) = cache.layers
        kind = _ScaledDrawn if isinstance(layer, Drawn) else _ScaledPatches
        return kind(cache, layer, self)

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


class ScaledCache(ABC):
    """The frames of one frame cache of a single layer, scaled."""

    def __init__(self, cache: FrameCache, pictures: ScaledPictures):
        """Scale the background of `cache`."""
        self._cache, self._pictures = cache, pictures
        # In two calls, since in one Pillow 13 chooses the order of the passes by the size (its
        # pull request 9549), and the parts of a frame would no longer fit together.
        self._narrow = _resized(cache.background, pictures.target[0], pictures.source[1])
        self.background = _resized(self._narrow, *pictures.target)  # (h, w, 3) uint8
        self._identity = hashlib.sha256(cache.background.tobytes()).digest()

    def picture(self, frame: int) -> Picture | None:
        """Return what lies over the background on a frame."""
        digest = self._digest(frame)
        if digest is None:
            return None
        return self._pictures.find((self._identity, digest), lambda: self._scaled(frame))

    @abstractmethod
    def _digest(self, frame: int) -> bytes | None:
        """Return what tells a frame from others with this background, None for nothing on it."""

    @abstractmethod
    def _scaled(self, frame: int) -> Picture:
        """Return what lies over the background on a frame, scaled."""

    def _cut(self, top: int, left: int, pixels: np.ndarray) -> Picture:
        """Return what differs from the background in a box of scaled pixels, (h, w, 3)."""
        cut = cut_patches(self.background, [(top, left, pixels)])
        return Picture(tuple(cut.boxes[0].tolist()), cut.pixels)


class _ScaledPatches(ScaledCache):
    """Of patches over a background."""

    def __init__(self, cache: FrameCache, layer: Layer, pictures: ScaledPictures):
        super().__init__(cache, pictures)
        self._patches, self._index = layer.patches, layer.index.tolist()
        self._digests = layer.patches.digests()

    def _digest(self, frame: int) -> bytes | None:
        patch = self._index[frame]
        if patch == NOTHING or not self._patches.boxes[patch, 2:].all():
            return None
        return self._digests[patch]

    def _scaled(self, frame: int) -> Picture:
        """Scale the rows that differ, then the columns that differ, as of the whole frame."""
        patch, picture = self._index[frame], self._cache[frame]
        start, first, tall, broad = self._patches.boxes[patch].tolist()
        (width, height), (wide, high) = self._pictures.source, self._pictures.target
        top, bottom = _reach(start, tall, height, high)
        left, right = _reach(first, broad, width, wide)
        columns = self._narrow[:, left:right].copy()
        rows = picture[start : start + tall]
        columns[start : start + tall] = _resized(rows, wide, tall)[:, left:right]
        return self._cut(top, left, _resized(columns, right - left, high)[top:bottom])


class _ScaledDrawn(ScaledCache):
    """Of whole pictures."""

    def __init__(self, cache: FrameCache, layer: Drawn, pictures: ScaledPictures):
        super().__init__(cache, pictures)
        self._layer = layer
        self._digests: dict[tuple[int, int], bytes] = {}  # of the pictures shown so far

    def _digest(self, frame: int) -> bytes:
        place = self._layer.find(frame)
        if place not in self._digests:
            self._digests[place] = hashlib.sha256(self._cache[frame]).digest()
        return self._digests[place]

    def _scaled(self, frame: int) -> Picture:
        wide, high = self._pictures.target
        narrow = _resized(self._cache[frame], wide, self._pictures.source[1])
        return self._cut(0, 0, _resized(narrow, wide, high))


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
