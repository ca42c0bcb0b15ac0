"""Atari screens as blocks of color numbers, since ALE's colors take a third of a frame's time."""

import numpy as np

from goalreel.environments.drawing.block_store import SIDE, BlockFrame, BlockReader, BlockStore

_BYTES = SIDE * SIDE  # of a block of colors' numbers


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
    """The screen of one instance."""

    def __init__(self, ale, colors: AtariColors):
        self._ale, self._screen = ale, np.empty(ale.getScreenDims(), np.uint8)
        self._reader = BlockReader(colors.store, 1, add=lambda blocks: colors.add(blocks, ale))

    def frame(self) -> BlockFrame:
        """Return the frame of `env.render()`."""
        self._ale.getScreen(self._screen)
        return self._reader.read(self._screen)
