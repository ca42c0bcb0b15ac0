"""Frames as numbered 16x16 blocks of pixels, so that equal blocks are stored once.

A `BlockStore` numbers distinct blocks. A `BlockFrame` lists the numbers of a frame's blocks in
raster order, and a `BlockReader` makes one from pixels. Blocks at an odd border repeat the frame's
last row and column.
"""

from collections.abc import Callable
from functools import reduce
from itertools import islice
from typing import NamedTuple

import numpy as np

SIDE = 16  # pixels, the size of an H.264 macroblock
_ROW = SIDE * 3  # bytes of a block's row
_BYTES = SIDE * _ROW


def grid(size: tuple[int, int]) -> tuple[int, int]:
    """Return the rows and columns of blocks of a frame. size: its height and width."""
    return -(-size[0] // SIDE), -(-size[1] // SIDE)


def join_blocks(blocks: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Return the frame, (H, W, 3) uint8, of blocks in raster order. size: height and width."""
    height, width = size
    rows, columns = grid(size)
    whole = blocks.reshape(rows, columns, SIDE, _ROW).swapaxes(1, 2)
    padded = whole.reshape(rows * SIDE, columns * SIDE, 3)
    return np.ascontiguousarray(padded[:height, :width])


def rgb(pixels: np.ndarray) -> np.ndarray:
    """Drop the unused byte of RGBX pixels: (...) uint32 to (..., 3) uint8."""
    four = np.ascontiguousarray(pixels).view(np.uint8).reshape(*pixels.shape, 4)
    three = np.empty((*pixels.shape, 3), np.uint8)
    for channel in range(3):  # three times as fast as copying three bytes at a time
        three[..., channel] = four[..., channel]
    return three


class BlockStore:
    """Distinct blocks, numbered in the order in which they are added."""

    def __init__(self):
        self._numbers: dict[bytes, int] = {}
        self._blocks: list[bytes] = []

    def __len__(self) -> int:
        return len(self._blocks)

    def add(self, blocks: list[bytes]) -> list[int]:
        """Add blocks. Return their numbers, old ones for known blocks."""
        known = self._numbers
        numbers = [known.setdefault(block, len(known)) for block in blocks]
        self._blocks += [*islice(reversed(known), len(known) - len(self._blocks))][::-1]
        return numbers

    def add_pixels(self, pixels: np.ndarray) -> list[int]:
        """Add blocks, (..., 16, 16, 3) uint8. Return their numbers."""
        data = pixels.tobytes()
        return self.add([data[i : i + _BYTES] for i in range(0, len(data), _BYTES)])

    def blocks(self, numbers: np.ndarray) -> list[bytes]:
        """Return the blocks with the given numbers, (n,) int."""
        return list(map(self._blocks.__getitem__, numbers.tolist()))

    def pixels(self, numbers: np.ndarray | None = None) -> np.ndarray:
        """Return blocks as pixels, (n, 16, 16, 3) uint8. numbers: (n,) int, None for all."""
        blocks = self._blocks if numbers is None else self.blocks(numbers)
        return np.frombuffer(b"".join(blocks), np.uint8).reshape(-1, SIDE, SIDE, 3)


class BlockFrame(NamedTuple):
    """A frame as the numbers of its blocks."""

    size: tuple[int, int]  # height and width
    numbers: np.ndarray  # (places,) int32, in raster order
    store: BlockStore

    def image(self) -> np.ndarray:
        """Return the frame's pixels, (H, W, 3) uint8."""
        return join_blocks(self.store.pixels(self.numbers), self.size)


class BlockReader:
    """Convert successive frames to BlockFrames, adding only blocks that changed."""

    def __init__(
        self,
        store: BlockStore,
        channels: int = 3,
        limit: int | None = None,
        add: Callable[[np.ndarray], list[int]] | None = None,
    ):
        # channels: 4 if a byte that is not shown follows each color
        # limit: of blocks; the reader then continues with another store
        # add: adds blocks of another number of channels, (n, 16, 16 * channels), to the store
        self._store, self._size = store, (0, 0)
        self._channels, self._limit, self._add = channels, limit, add or store.add_pixels

    def _allocate(self, size: tuple[int, int]) -> None:
        self._size, (height, width) = size, size
        (rows, columns), row = grid(size), SIDE * self._channels
        self._bytes = width * self._channels
        # The widest integer that divides a row, e.g. 64 bits if the width is a multiple of 8.
        # Four channels may be a window of a wider image, which begins at any pixel.
        widths = ("u4",) if self._channels == 4 else ("u8", "u4", "u2", "u1")
        self._word = next(t for t in widths if self._bytes % int(t[1]) == 0)
        words, each = self._bytes // int(self._word[1]), row // int(self._word[1])
        shape = rows * SIDE, columns * row
        self._last = np.zeros(shape, np.uint8)  # the frame before, padded to whole blocks
        self._before = self._last[:height, : self._bytes]
        self._words = self._before.view(self._word)
        self._blocks = self._last.reshape(rows, SIDE, columns, row).swapaxes(1, 2)
        # Booleans: per word, per block's column of words, and the latter in pairs.
        unequal = np.zeros((shape[0], words), bool)
        hits = np.zeros((rows, columns * each), bool)
        self._unequal, self._rows = unequal[:height], unequal.reshape(-1, SIDE, words)
        self._hits, self._pairs = hits[:, :words], list(hits.reshape(-1, each).view(np.uint16).T)
        self._row, self._column = np.divmod(np.arange(rows * columns), columns)
        self._numbers = np.zeros(rows * columns, np.int32)

    def read(self, frame: np.ndarray) -> BlockFrame:
        """Return a frame, (H, W, 3) uint8 or (H, W) uint32 for four channels, as a BlockFrame."""
        # The array may be reused afterwards.
        if self._limit and len(self._store) > self._limit:
            self._store, self._size = BlockStore(), (0, 0)
            self._add = self._store.add_pixels
        is_first = frame.shape[:2] != self._size
        if is_first:
            self._allocate(frame.shape[:2])
        height = self._size[0]
        if self._channels == 4:
            pixels = frame.view(np.uint8)
        else:
            pixels = np.ascontiguousarray(frame).reshape(height, self._bytes)
        if is_first:
            places = np.arange(len(self._row))
        else:
            np.not_equal(pixels.view(self._word), self._words, out=self._unequal)
            np.logical_or.reduce(self._rows, axis=1, out=self._hits)
            # `any` over the few booleans of a block takes three times as long.
            places = np.flatnonzero(reduce(np.bitwise_or, self._pairs))
        if len(places):
            row, column = self._row[places], self._column[places]
            top, bottom = int(row[0]) * SIDE, min((int(row[-1]) + 1) * SIDE, height)
            self._before[top:bottom] = pixels[top:bottom]
            margin = self._last[top:bottom, self._bytes :]
            margin = margin.reshape(bottom - top, -1, self._channels)
            margin[:] = self._before[top:bottom, None, -self._channels :]
            self._last[height:] = self._last[height - 1]
            self._numbers = self._numbers.copy()
            blocks = self._blocks[row, column]
            blocks = rgb(blocks.view(np.uint32)) if self._channels == 4 else blocks
            self._numbers[places] = self._add(blocks)
        return BlockFrame(self._size, self._numbers, self._store)
