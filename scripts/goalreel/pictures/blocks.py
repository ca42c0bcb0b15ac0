"""Blocks: pictures as the 16x16 blocks that changed since the picture before.

From one picture of an environment to the next few blocks change, and few of them were never seen
before. A group is a run of pictures that stands alone: its first one is told in whole, and equal
blocks are kept once. Blocks at an odd border are filled up with their last row and column.
"""

import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

SIDE = 16  # pixels, as a macroblock of H.264
_BYTES = SIDE * 3  # of a block's row
# A group ends after so many pictures, or when it has so many distinct blocks (6 MB): that bounds
# the memory of whoever writes and reads it, and what it takes to compose a picture.
_MOST_PICTURES, _MOST_BLOCKS = 256, 8192


@dataclass(frozen=True)
class Group:
    """A run of pictures; every place of the first one is among the changes."""

    changes: np.ndarray  # (3, n) int32: the picture, the place and the block of each change
    blocks: np.ndarray  # (m, 16, 16, 3) uint8, all different

    @cached_property
    def _ends(self) -> list[int]:
        pictures = np.arange(self.changes[0, -1] + 1)
        return np.searchsorted(self.changes[0], pictures, "right").tolist()

    def equals(self, other: "Group") -> bool:
        """Tell whether it has the same pictures as another group."""
        same = np.array_equal(self.changes, other.changes)
        return same and np.array_equal(self.blocks, other.blocks)

    def up_to(self, picture: int) -> int:
        """Return how many changes there are up to a picture, itself included."""
        return self._ends[min(picture, len(self._ends) - 1)]

    def padded(self, size: tuple[int, int], target: tuple[int, int]) -> "Group":
        """Return its pictures in the upper left corner of black ones; both sizes: H and W."""
        if size == target:
            return self
        recorder = Recorder()
        for picture in range(len(self._ends)):
            recorder.put(on_black(self.compose(picture, size), target))
        ((_, group),) = recorder.rest()
        return group

    def compose(self, picture: int, size: tuple[int, int]) -> np.ndarray:
        """Return a picture, (H, W, 3) uint8; size: H and W."""
        rows, columns = grid(size)
        _, places, blocks = self.changes[:, : self.up_to(picture)]
        latest = np.empty(rows * columns, np.int32)
        latest[places] = blocks  # of several changes of a place the last one stays
        return joined(self.blocks[latest], size)


@dataclass(frozen=True)
class Drawn:
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
        number = bisect.bisect_right(self._starts, picture) - 1
        return number, picture - self._starts[number]

    @cached_property
    def _starts(self) -> list[int]:
        return self.starts.tolist()

    def paste(self, canvas: np.ndarray, frame: int) -> None:
        """Write a frame's picture into `canvas`, (H, W, 3) uint8."""
        number, picture = self.find(frame)
        composed = self.group(number).compose(picture, self.size)
        canvas[self.place] = enlarged(composed, self.scale)


def enlarged(picture: np.ndarray, scale: int) -> np.ndarray:
    """Return a picture, (h, w, 3) uint8, with each pixel `scale` times in each direction."""
    return picture if scale == 1 else picture.repeat(scale, 1).repeat(scale, 0)


def on_black(picture: np.ndarray, size: Sequence[int]) -> np.ndarray:
    """Return a picture, (h, w, 3), with black below and to the right; size: H and W at least."""
    canvas = np.zeros((*np.maximum(size[:2], picture.shape[:2]), 3), np.uint8)
    canvas[: picture.shape[0], : picture.shape[1]] = picture
    return canvas


def joined(blocks: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Return the picture, (H, W, 3) uint8, of its blocks in raster order; size: H and W."""
    height, width = size
    rows, columns = grid(size)
    tiles = blocks.reshape(rows, columns, SIDE, _BYTES).swapaxes(1, 2)
    padded = tiles.reshape(rows * SIDE, columns * SIDE, 3)
    return np.ascontiguousarray(padded[:height, :width])


def grid(size: tuple[int, int]) -> tuple[int, int]:
    """Return the rows and columns of blocks of a picture; size: its height and width."""
    return -(-size[0] // SIDE), -(-size[1] // SIDE)


class Recorder:
    """Makes groups of pictures that come one at a time, of one kind."""

    def __init__(self):
        """Begin without a picture."""
        self._changed: _Changes | None = None
        # Of the picture before, if it was told by numbers.
        self._numbered: tuple[np.ndarray, list[bytes]] | None = None
        self._begin()

    def _begin(self) -> None:
        self._blocks: dict[bytes, int] = {}
        self._places: list[np.ndarray] = []  # of each picture's changes
        self._numbers: list[int] = []  # of all changes' blocks

    def add(self, picture: np.ndarray) -> tuple[int, Group] | None:
        """Take a picture, which may be drawn over afterwards.

        Returns a group that was full before it, with the number of its pictures, or None.
        """
        full = self._full()
        self.put(picture)
        return full

    def put(self, picture: np.ndarray) -> None:
        """Take a picture, as `add` does, into the same group, however full that is."""
        if self._changed is None:
            self._changed = _Changes(picture.shape[:2])
        places, blocks = self._changed.since_last(picture, whole=not self._places)
        data, size = blocks.tobytes(), SIDE * _BYTES
        self._put(places, [data[i : i + size] for i in range(0, len(data), size)])

    def add_numbers(self, numbers: np.ndarray, blocks: list[bytes]) -> tuple[int, Group] | None:
        """Take a picture that is told by its blocks' numbers; returns what `add` does.

        Args:
            numbers: of the block at each place, (places,) int.
            blocks: all blocks, by their numbers; more may be added to the same list.
        """
        full = self._full()
        if not self._places:
            places = np.arange(len(numbers))
        else:
            before, known = self._numbered
            places = np.flatnonzero(numbers != before)
            if known is not blocks:  # the same may have other numbers
                pairs = zip(before.tolist(), numbers.tolist(), strict=True)
                places = np.flatnonzero([known[old] != blocks[new] for old, new in pairs])
        self._put(places, [blocks[number] for number in numbers[places].tolist()])
        self._numbered = numbers, blocks
        return full

    def _full(self) -> tuple[int, Group] | None:
        if len(self._places) == _MOST_PICTURES or len(self._blocks) >= _MOST_BLOCKS:
            return self._group()
        return None

    def _put(self, places: np.ndarray, blocks: list[bytes]) -> None:
        known = self._blocks
        self._places.append(places)
        self._numbers += [known.setdefault(block, len(known)) for block in blocks]

    def rest(self) -> list[tuple[int, Group]]:
        """Return what has not been returned yet: one group, or none."""
        return [self._group()] if self._places else []

    def _group(self) -> tuple[int, Group]:
        count = len(self._places)
        pictures = np.repeat(np.arange(count), [len(places) for places in self._places])
        changes = np.stack([pictures, np.concatenate(self._places), self._numbers])
        blocks = np.frombuffer(b"".join(self._blocks), np.uint8).reshape(-1, SIDE, SIDE, 3)
        self._begin()
        return count, Group(changes.astype(np.int32), blocks)


class _Changes:
    """Finds what changed from one picture to the next."""

    def __init__(self, size: tuple[int, int]):
        self._height, width = size
        self._rows, self._columns = grid(size)
        self._bytes = width * 3
        # As wide as divides a row: 64 bits where the width is a multiple of 8.
        self._word = next(t for t in ("u8", "u4", "u2", "u1") if self._bytes % int(t[1]) == 0)
        words, each = self._bytes // int(self._word[1]), _BYTES // int(self._word[1])
        shape = self._rows * SIDE, self._columns * _BYTES
        self._last = np.zeros(shape, np.uint8)  # the picture before, filled up to whole blocks
        self._before = self._last[: self._height, : self._bytes]
        self._words = self._before.view(self._word)
        self._tiles = self._last.reshape(self._rows, SIDE, self._columns, _BYTES).swapaxes(1, 2)
        # Truth values: of words, of a block's column of words, and of these in pairs.
        unequal = np.zeros((shape[0], words), bool)
        columns = np.zeros((self._rows, self._columns * each), bool)
        self._unequal, self._stripes = unequal[: self._height], unequal.reshape(-1, SIDE, words)
        self._hits = columns[:, :words]
        self._pairs = list(columns.reshape(-1, each).view(np.uint16).T)
        self._row, self._column = np.divmod(np.arange(self._rows * self._columns), self._columns)

    def since_last(self, picture: np.ndarray, whole: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the places that changed, in order, and their blocks, (n, 16, 48) uint8.

        whole: return every place.
        """
        pixels = np.ascontiguousarray(picture).reshape(self._height, self._bytes)
        if whole:
            places = np.arange(len(self._row))
        else:
            np.not_equal(pixels.view(self._word), self._words, out=self._unequal)
            np.logical_or.reduce(self._stripes, axis=1, out=self._hits)
            # A reduction over a block's few truth values takes thrice as long.
            places = np.flatnonzero(reduce(np.bitwise_or, self._pairs))
        if len(places) == 0:
            return places, self._tiles[:0, 0]
        row, column = self._row[places], self._column[places]
        top, bottom = int(row[0]) * SIDE, min((int(row[-1]) + 1) * SIDE, self._height)
        self._before[top:bottom] = pixels[top:bottom]
        if column.max() == self._columns - 1:
            self._fill_right(top, bottom)
        if bottom == self._height:
            self._last[bottom:] = self._last[bottom - 1]
        return places, self._tiles[row, column]

    def _fill_right(self, top: int, bottom: int) -> None:
        """Repeat the last column of these rows up to the end of its blocks."""
        rows = self._last[top:bottom]
        margin = rows[:, self._bytes :].reshape(len(rows), -1, 3)
        margin[:] = rows[:, None, self._bytes - 3 : self._bytes]
