"""Groups: pictures as the blocks that changed since the picture before.

A group is a run of pictures that stands alone: its first one is told in whole, and equal blocks are
kept once.
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

# A group ends after so many pictures, or when it has so many distinct blocks (6 MB): that bounds
# the memory of whoever writes and reads it, and what it takes to compose a picture.
_MAX_PICTURES, _MAX_BLOCKS = 256, 8192


@dataclass(frozen=True)
class Group:
    """A run of pictures; every place of the first one is among the changes."""

    size: tuple[int, int]  # H and W of the pictures
    count: int  # of pictures
    changes: np.ndarray  # (3, n) int32: the picture, the place and the block of each change
    blocks: np.ndarray  # (m, 16, 16, 3) uint8, all different

    @cached_property
    def ends(self) -> list[int]:
        """How many changes there are up to each picture, itself included."""
        return np.searchsorted(self.changes[0], np.arange(self.count), "right").tolist()

    def pad(self, size: tuple[int, int]) -> "Group":
        """Return its pictures in the upper left corner of black ones; size: H and W of those."""
        if size == self.size:
            return self
        recorder = BlockRecorder()
        for picture in range(self.count):
            recorder.put(pad_black(self.compose(picture, self.size), size))
        return recorder.flush()[0]

    def compose(self, picture: int, size: tuple[int, int]) -> np.ndarray:
        """Return a picture, (H, W, 3) uint8; size: H and W, an odd one may count one more."""
        rows, columns = grid(size)
        _, places, blocks = self.changes[:, : self.ends[picture]]
        latest = np.empty(rows * columns, np.int32)
        latest[places] = blocks  # of several changes of a place the last one stays
        return join_blocks(self.blocks[latest], size)


@dataclass(frozen=True)
class BlockLayer:
    """A layer of whole pictures that no other layer covers; its groups are read when needed."""

    name: str
    size: tuple[int, int]  # H and W of the pictures; an odd one may count one more
    starts: np.ndarray  # (groups + 1,) int64, the number of each group's first picture
    group: Callable[[int], Group]
    index: np.ndarray  # (frames,) int64, the picture of each frame
    scale: int = 1  # how many times a pixel is there in each direction
    top: int = 0  # the first of the frame's rows that it fills

    @property
    def place(self) -> tuple[slice, slice]:
        """The rows and columns of a frame that it fills."""
        height, width = (length * self.scale for length in self.size)
        return slice(self.top, self.top + height), slice(0, width)

    def find(self, frame: int) -> tuple[int, int]:
        """Return the group of a frame's picture, and the picture's number in it."""
        picture = int(self.index[frame])
        number = int(np.searchsorted(self.starts, picture, "right")) - 1
        return number, picture - int(self.starts[number])

    def paste(self, canvas: np.ndarray, frame: int) -> None:
        """Write a frame's picture into `canvas`, (H, W, 3) uint8."""
        number, picture = self.find(frame)
        composed = self.group(number).compose(picture, self.size)
        canvas[self.place] = enlarge_pixels(composed, self.scale)


def enlarge_pixels(picture: np.ndarray, scale: int) -> np.ndarray:
    """Return a picture, (h, w, 3) uint8, with each pixel `scale` times in each direction."""
    return picture if scale == 1 else picture.repeat(scale, 1).repeat(scale, 0)


def pad_black(picture: np.ndarray, size: Sequence[int]) -> np.ndarray:
    """Return a picture, (h, w, 3), with black below and to the right; size: H and W at least."""
    canvas = np.zeros((*np.maximum(size[:2], picture.shape[:2]), 3), np.uint8)
    return paste(canvas, picture, 0, 0)


class BlockRecorder:
    """Makes groups of pictures that come one at a time; those of a group are of one size.

    Attributes:
        change: a hash of what the latest picture changed. It is the same in every recorder of one
            process that has taken the same pictures.
    """

    def __init__(self):
        """Begin without a picture."""
        self._begin()

    def _begin(self) -> None:
        self._reader, self._store = BlockReader(BlockStore()), BlockStore()
        self._places: list[np.ndarray] = []  # of each picture's changes
        self._numbers: list[int] = []  # of all changes' blocks
        self._before: BlockFrame | None = None

    def add(self, picture: np.ndarray | BlockFrame) -> list[Group]:
        """Take a picture; return the group that ends before it, or none."""
        full = len(self._places) == _MAX_PICTURES or len(self._store) >= _MAX_BLOCKS
        size = picture.size if isinstance(picture, BlockFrame) else picture.shape[:2]
        ended = self.flush() if full or self._before and size != self._before.size else []
        self.put(picture)
        return ended

    def put(self, picture: np.ndarray | BlockFrame) -> None:
        """Take a picture, as `add` does, into the same group, however full that is."""
        frame = picture if isinstance(picture, BlockFrame) else self._reader.read(picture)
        numbers, store, before = frame.numbers, frame.store, self._before
        if before is None:
            places = np.arange(len(numbers))
        elif before.store is store:
            places = np.flatnonzero(numbers != before.numbers)
        else:  # the same block may have another number
            pairs = zip(before.store.blocks(before.numbers), store.blocks(numbers), strict=True)
            places = np.flatnonzero([old != new for old, new in pairs])
        blocks = store.blocks(numbers[places])
        self._places.append(places)
        self._numbers += self._store.add(blocks)
        self._before, self.change = frame, hash((frame.size, places.tobytes(), *blocks))

    def flush(self) -> list[Group]:
        """Return what has not been returned yet: one group, or none."""
        if not self._places:
            return []
        pictures = np.repeat(np.arange(len(self._places)), list(map(len, self._places)))
        changes = np.stack([pictures, np.concatenate(self._places), self._numbers])
        blocks = self._store.pixels()
        group = Group(self._before.size, len(self._places), changes.astype(np.int32), blocks)
        self._begin()
        return [group]
