"""A frame cache's pictures at a smaller size, each scaled once and kept by its content.

A frame is the scaled background with pictures pasted over it, as in the cache itself, and equals
what Pillow makes of the whole frame: Lanczos, first along the rows, then along the columns. Only
what differs from the background is scaled. How the pictures are laid out stands in page.
"""

import hashlib
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.pictures.frame_cache import FrameCache
from goalreel.pictures.layers import NOTHING, cut_patches

Box = tuple[int, int, int, int]  # top, left, bottom, right

_REACH = 3  # pixels to each side of a scaled one that Lanczos takes into account
_ROOM = 256 << 20  # bytes of pictures that are kept


@dataclass(frozen=True, eq=False)
class Picture:
    """A box of scaled pixels: box is (top, left, height, width), all even; pixels (n, 3) uint8."""

    box: tuple[int, int, int, int]
    pixels: np.ndarray


class ScaledPictures:
    """The pictures of any number of frame caches with frames of one size."""

    def __init__(self, source: tuple[int, int], target: tuple[int, int], room: int = _ROOM):
        """Take the (width, height) of the frames and of their pictures; room: bytes to keep.

        target: even, and not larger than source.
        """
        self.source, self.target = source, target
        self._room = room
        self._held = 0
        self._kept: OrderedDict[bytes, Picture] = OrderedDict()

    def of(self, cache: FrameCache) -> "ScaledCache":
        """Return a cache's frames, scaled. Raises GoalreelError if their size is another."""
        height, width = cache.background.shape[:2]
        if (width, height) != self.source:
            raise GoalreelError(
                f"frames of {width}x{height} pixels among those of {self.source[0]}x"
                f"{self.source[1]}; all frames of a view must be of one size"
            )
        return ScaledCache(cache, self)

    def find(self, content: bytes, scale) -> Picture:
        """Return the picture of this content; if it is not kept, the one that scale() makes."""
        picture = self._kept.get(content)
        if picture is None:
            picture = self._kept[content] = scale()
            self._held += picture.pixels.nbytes
            while self._held > self._room and len(self._kept) > 1:
                self._held -= self._kept.popitem(last=False)[1].pixels.nbytes
        else:
            self._kept.move_to_end(content)
        return picture


class ScaledCache:
    """One frame cache's frames, scaled.

    background: (h, w, 3) uint8; layers: in how many layers the pictures of a frame stand
    """

    def __init__(self, cache: FrameCache, pictures: ScaledPictures):
        """Scale the background of `cache`."""
        self._cache, self._pictures = cache, pictures
        # In two calls, since in one Pillow 13 chooses the order of the passes by the size (its
        # pull request 9549), and the parts of a frame would no longer fit together.
        self._narrow = _resized(cache.background, pictures.target[0], pictures.source[1])
        self.background = _resized(self._narrow, *pictures.target)
        self._identity = hashlib.sha256(cache.background.tobytes()).digest()
        self.layers = len(cache.layers)
        self._indices = [layer.index.tolist() for layer in cache.layers]
        self._boxes = [self._touched(layer.patches.boxes) for layer in cache.layers]
        self._groups: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        self._contents: dict[tuple, bytes] = {}

    def pictures(self, frame: int) -> list[Picture | None]:
        """Return what lies over the background on a frame: a picture or None for each layer."""
        shown = tuple(index[frame] for index in self._indices)
        if shown not in self._groups:
            self._groups[shown] = self._grouped(shown)
        found: list[Picture | None] = [None] * self.layers
        for group in self._groups[shown]:
            found[group[0]] = self._picture(group, tuple(shown[layer] for layer in group))
        return found

    def _touched(self, boxes: np.ndarray) -> list[Box]:
        """Return for each patch the even-aligned box of scaled pixels that it can change."""
        (width, height), (wide, high) = self._pictures.source, self._pictures.target
        top, left, tall, broad = boxes.T.astype(np.int64)
        tops, bottoms = _reach(top, tall, height, high)
        lefts, rights = _reach(left, broad, width, wide)
        return list(zip(*(side.tolist() for side in (tops, lefts, bottoms, rights)), strict=True))

    def _grouped(self, shown: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Return which layers must be scaled together, as what they change overlaps."""
        groups: list[tuple[Box, tuple[int, ...]]] = []
        for layer, patch in enumerate(shown):
            if patch == NOTHING or not self._cache.layers[layer].patches.boxes[patch, 2:].all():
                continue
            box, members = self._boxes[layer][patch], (layer,)
            while overlapping := [group for group in groups if _overlap(box, group[0])]:
                for group in overlapping:
                    groups.remove(group)
                    box, members = _around(box, group[0]), tuple(sorted(members + group[1]))
            groups.append((box, members))
        return [members for _, members in groups]

    def _picture(self, layers: tuple[int, ...], patches: tuple[int, ...]) -> Picture:
        if (layers, patches) not in self._contents:
            self._contents[layers, patches] = self._content(layers, patches)
        content = self._contents[layers, patches]
        return self._pictures.find(content, lambda: self._scaled(layers, patches))

    def _content(self, layers: tuple[int, ...], patches: tuple[int, ...]) -> bytes:
        digest = hashlib.sha256(self._identity)
        for layer, patch in zip(layers, patches, strict=True):
            drawn = self._cache.layers[layer].patches
            digest.update(drawn.boxes[patch].astype(np.int64).tobytes())
            digest.update(drawn.pixels[drawn.offsets[patch] : drawn.offsets[patch + 1]].tobytes())
        return digest.digest()

    def _scaled(self, layers: tuple[int, ...], patches: tuple[int, ...]) -> Picture:
        """Scale the rows that differ, then the columns that differ, as of the whole frame."""
        frame = self._cache.background.copy()
        drawn: Box | None = None
        touched: Box | None = None
        for layer, patch in zip(layers, patches, strict=True):
            self._cache.layers[layer].patches.paste(frame, patch)
            top, left, tall, broad = self._cache.layers[layer].patches.boxes[patch].tolist()
            drawn = _around(drawn, (top, left, top + tall, left + broad))
            touched = _around(touched, self._boxes[layer][patch])
        rows = frame[drawn[0] : drawn[2]]
        top, left, bottom, right = touched
        columns = self._narrow[:, left:right].copy()
        width, height = self._pictures.target
        columns[drawn[0] : drawn[2]] = _resized(rows, width, len(rows))[:, left:right]
        pixels = _resized(columns, right - left, height)[top:bottom]
        cut = cut_patches(self.background, [(top, left, pixels)])
        return Picture(tuple(cut.boxes[0].tolist()), cut.pixels)


def _reach(start: np.ndarray, length: np.ndarray, source: int, target: int):
    """Return the first scaled pixels that depend on `length` source pixels, and the end of them.

    Both even: what stands between them is opaque, and 2x2 pixels share a chroma sample.
    """
    first = start * target // source - _REACH - 1
    end = -(-(start + length) * target // source) + _REACH + 1
    return np.maximum(first, 0) & ~1, np.minimum((end + 1) & ~1, target)


def _resized(pixels: np.ndarray, width: int, height: int) -> np.ndarray:
    """Return (h, w, 3) uint8 pixels at another width and height."""
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(pixels))
    return np.asarray(image.resize((width, height), Image.Resampling.LANCZOS))


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _around(a: Box | None, b: Box) -> Box:
    if a is None:
        return b
    return min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])
