"""Atari screens as blocks of color numbers, since ALE's colors take a third of a frame's time."""

import numpy as np

from goalreel.environments.drawing.block_store import SIDE, BlockFrame, BlockStore, grid

_BYTES = SIDE * SIDE  # of a block of colors' numbers
_WORDS = 8  # pixels that are compared at a time, as a 64-bit number


class AtariColors:
    """The colors of ALE's color numbers, and the blocks of a store by their color numbers."""

    def __init__(self, store: BlockStore):
        self.store, self._numbers = store, {}
        self._table, self._known = np.zeros((256, 3), np.uint8), np.zeros(256, bool)

    def add(self, blocks: np.ndarray, ale) -> list[int]:
        """Return the numbers of blocks, (n, 16, 16) uint8, in the store. ALE shows them now."""
        data, known = blocks.tobytes(), self._numbers
        names = [data[first : first + _BYTES] for first in range(0, len(data), _BYTES)]
        if new := [place for place, name in enumerate(names) if name not in known]:
            if not self._known[blocks].all():
                screen = ale.getScreen()
                self._table[screen], self._known[screen] = ale.getScreenRGB(), True
            numbers = self.store.add_pixels(self._table[blocks[new]])
            known |= zip((names[place] for place in new), numbers, strict=True)
        return [known[name] for name in names]


class AtariScreen:
    """The screen of one instance, whose width is a multiple of 16."""

    def __init__(self, ale, colors: AtariColors):
        self._ale, self._colors = ale, colors
        height, width = self._size = ale.getScreenDims()
        rows, columns = grid(self._size)
        self._row, self._column = np.divmod(np.arange(rows * columns), columns)
        # Two screens, the latest one first, padded to whole blocks.
        padded = [np.zeros((rows * SIDE, width), np.uint8) for _ in range(2)]
        self._screens = [(p, p[:height], p.reshape(rows, SIDE, columns, SIDE)) for p in padded]
        self._unequal = np.zeros((rows, SIDE, width // _WORDS), bool)
        self._frame: BlockFrame | None = None

    def frame(self) -> BlockFrame:
        """Return the frame of `env.render()`."""
        self._screens.reverse()
        (padded, screen, blocks), (before, *_) = self._screens
        self._ale.getScreen(screen)
        if self._frame is None:
            places, numbers = np.arange(len(self._row)), np.zeros(len(self._row), np.int32)
        else:
            unequal = self._unequal.reshape(len(padded), -1)
            np.not_equal(padded.view(np.uint64), before.view(np.uint64), out=unequal)
            # Booleans in fours are quicker to combine.
            words = np.bitwise_or.reduce(self._unequal.view(np.uint32), axis=1)
            (places,) = words.view(np.uint16).reshape(-1).nonzero()
            numbers = self._frame.numbers
        if len(places):
            padded[len(screen) :] = screen[-1]
            changed, numbers = blocks[self._row[places], :, self._column[places]], numbers.copy()
            numbers[places] = self._colors.add(changed, self._ale)
            self._frame = BlockFrame(self._size, numbers, self._colors.store)
        return self._frame
