"""A frame cache's pictures at a smaller size, each scaled once and known by its content.

A frame is the scaled background with a picture pasted over it, and equals what Pillow makes of the
whole frame: Lanczos, first along the rows, then along the columns. Of a frame that is a patch over
a background only what differs is scaled; what Gymnasium has drawn is scaled whole.
"""

import hashlib
import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.rendering.blocks import Drawn
from goalreel.rendering.frame_cache import FrameCache
from goalreel.rendering.layers import NOTHING, cut_patches
from goalreel.rendering.overlay import framed
from goalreel.views.filmed_episodes import Episode, FilmedEpisodes, Place

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

    def episodes(
        self, filmed: FilmedEpisodes, scale: int | None, places: Iterable[Place] | None = None
    ) -> Iterator[tuple[Episode, "ScaledCache"]]:
        """Yield episodes with the scaled frames of their shards; scale, places: see `framed`."""
        episodes = filmed.episodes(places)
        for _, shard in itertools.groupby(episodes, key=lambda episode: episode.place[0]):
            scaled = None
            for episode in shard:
                scaled = scaled or ScaledCache(framed(episode.cache, scale)[0], self)
                yield episode, scaled

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
        """Scale the background. Raises GoalreelError if the frames have another size."""
        height, width = cache.background.shape[:2]
        if (width, height) != pictures.source:
            raise GoalreelError(
                f"frames of {width}x{height} pixels among those of {pictures.source[0]}x"
                f"{pictures.source[1]}; all frames of a view must be of one size"
            )
        (layer,) = cache.layers
        self._cache, self._pictures, self._index = cache, pictures, layer.index.tolist()
        # In two calls, since in one Pillow 13 chooses the order of the passes by the size (its
        # pull request 9549), and the parts of a frame would no longer fit together.
        self._narrow = _resized(cache.background, pictures.target[0], height)
        self.background = _resized(self._narrow, *pictures.target)  # (h, w, 3) uint8
        self._identity = hashlib.sha256(cache.background.tobytes()).digest()
        self._patches = None if isinstance(layer, Drawn) else layer.patches
        # What tells pictures from others with this background; of drawn ones, those shown so far.
        self._digests = dict(enumerate(self._patches.digests())) if self._patches else {}

    def picture(self, frame: int) -> Picture | None:
        """Return what lies over the background on a frame."""
        number = self._index[frame]
        box = 0, 0, *self._cache.background.shape[:2]
        if self._patches is not None:
            if number == NOTHING or not self._patches.boxes[number, 2:].all():
                return None
            box = self._patches.boxes[number].tolist()
        elif number not in self._digests:
            frame = self._cache[frame]
            self._digests[number] = hashlib.sha256(frame).digest()
        content = self._identity, self._digests[number]
        return self._pictures.find(content, lambda: self._scaled(frame, *box))

    def _scaled(
        self, frame: int | np.ndarray, start: int, first: int, tall: int, broad: int
    ) -> Picture:
        """Scale the rows of a box that differs, then its columns, as of the whole frame.

        frame: its number, or its pixels if they are known.
        """
        frame = self._cache[frame] if isinstance(frame, int) else frame
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

    if pixels.shape[:2] == (height, width):
        return pixels
    image = Image.fromarray(np.ascontiguousarray(pixels))
    return np.asarray(image.resize((width, height), Image.Resampling.LANCZOS))
