"""Store a sequence of images as groups, each image as the blocks that changed since the one before.

`BlockRecorder` makes groups of images, and `BlockLayer` pastes them into frames. A group needs no
other group: its first image lists all blocks, and equal blocks are stored once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from goalreel.arrays import paste
from goalreel.environments.drawing.block_store import (
    BlockFrame,
    BlockReader,
    BlockStore,
    grid,
    join_blocks,
)

# The limits of a group, in images and in distinct blocks (6 MB). They bound the memory for writing
# and reading it, and the time to compose an image.
_MAX_IMAGES, _MAX_BLOCKS = 256, 8192


@dataclass(frozen=True)
class Group:
    """Consecutive images. The changes of the first one cover every place."""

    size: tuple[int, int]  # height and width of the images
    count: int  # images in the group
    changes: np.ndarray  # (3, n) int32: image, place and block of each change
    blocks: np.ndarray  # (m, 16, 16, 3) uint8, all distinct

    @cached_property
    def ends(self) -> list[int]:
        """The number of changes up to and including each image."""
        return np.searchsorted(self.changes[0], np.arange(self.count), "right").tolist()

    def pad(self, size: tuple[int, int]) -> "Group":
        """Return the group padded with black below and to the right to `size`, (height, width)."""
        if size == self.size:
            return self
        recorder = BlockRecorder()
        for image in range(self.count):
            recorder.put(pad_black(self.compose(image, self.size), size))
        return recorder.flush()[0]

    def compose(self, image: int, size: tuple[int, int]) -> np.ndarray:
        """Return an image, (H, W, 3) uint8. size: height and width; odd sides may be rounded up."""
        rows, columns = grid(size)
        _, places, blocks = self.changes[:, : self.ends[image]]
        latest = np.empty(rows * columns, np.int32)
        latest[places] = blocks  # the last change of a place wins
        return join_blocks(self.blocks[latest], size)


@dataclass(frozen=True)
class BlockLayer:
    """A layer of opaque images that no other layer covers. It reads groups on demand."""

    name: str
    size: tuple[int, int]  # height and width of the images; odd sides may be rounded up
    starts: np.ndarray  # (groups + 1,) int64, the index of each group's first image
    group: Callable[[int], Group]  # reads a group
    index: np.ndarray  # (frames,) int64, the image of each frame
    scale: int = 1  # how many times each pixel repeats each way
    top: int = 0  # the first row of the frame that it fills

    @property
    def place(self) -> tuple[slice, slice]:
        """The rows and columns of a frame that the layer fills."""
        height, width = (length * self.scale for length in self.size)
        return slice(self.top, self.top + height), slice(0, width)

    def find(self, frame: int) -> tuple[int, int]:
        """Return the group that holds a frame's image, and the image's index in it."""
        image = int(self.index[frame])
        number = int(np.searchsorted(self.starts, image, "right")) - 1
        return number, image - int(self.starts[number])

    def paste(self, canvas: np.ndarray, frame: int) -> None:
        """Write the image of a frame into `canvas`, (H, W, 3) uint8."""
        number, image = self.find(frame)
        composed = self.group(number).compose(image, self.size)
        canvas[self.place] = enlarge_pixels(composed, self.scale)


def enlarge_pixels(image: np.ndarray, scale: int) -> np.ndarray:
    """Return images, (..., h, w, 3) uint8, with each pixel repeated `scale` times each way."""
    return image if scale == 1 else image.repeat(scale, -2).repeat(scale, -3)


def pad_black(image: np.ndarray, size: Sequence[int]) -> np.ndarray:
    """Return an image, (h, w, 3), padded with black below and right to at least `size` (H, W)."""
    canvas = np.zeros((*np.maximum(size[:2], image.shape[:2]), 3), np.uint8)
    return paste(canvas, image, 0, 0)


class BlockRecorder:
    """Split a sequence of images into groups. The images of a group have one size."""

    def __init__(self):
        self._begin()

    def _begin(self) -> None:
        self._reader, self._store = BlockReader(BlockStore()), BlockStore()
        self._places: list[np.ndarray] = []  # the places that each image changes
        self._numbers: list[int] = []  # the block of each change
        self._before: BlockFrame | None = None  # the image before

    def add(self, image: np.ndarray | BlockFrame) -> list[Group]:
        """Add an image. Return the group that ends before it, if one ends, in a list."""
        full = len(self._places) == _MAX_IMAGES or len(self._store) >= _MAX_BLOCKS
        size = image.size if isinstance(image, BlockFrame) else image.shape[:2]
        ended = self.flush() if full or self._before and size != self._before.size else []
        self.put(image)
        return ended

    def put(self, image: np.ndarray | BlockFrame) -> None:
        """Add an image to the current group, even if the group is full."""
        frame = image if isinstance(image, BlockFrame) else self._reader.read(image)
        numbers, store, before = frame.numbers, frame.store, self._before
        if before is None:
            places = np.arange(len(numbers))
        elif before.store is store:
            (places,) = (numbers != before.numbers).nonzero()
        else:  # the stores may number the same block differently
            pairs = zip(before.store.blocks(before.numbers), store.blocks(numbers), strict=True)
            places = np.flatnonzero([old != new for old, new in pairs])
        blocks = store.blocks(numbers[places])
        self._places.append(places)
        self._numbers += self._store.add(blocks)
        self._before = frame

    def flush(self) -> list[Group]:
        """Return the unfinished group in a list, which is empty without images."""
        if not self._places:
            return []
        images = np.repeat(np.arange(len(self._places)), list(map(len, self._places)))
        changes = np.stack([images, np.concatenate(self._places), self._numbers])
        blocks = self._store.pixels()
        group = Group(self._before.size, len(self._places), changes.astype(np.int32), blocks)
        self._begin()
        return [group]
