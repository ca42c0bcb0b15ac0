"""A surface of pygame's that is kept from frame to frame, and mended where something moved.

Renderers make, fill, turn, copy and read whole surfaces for each frame. Here what stands still is
drawn once, upside down as renderers draw it, and of what moves only the boxes are compared.
"""

import os
from collections.abc import Iterable

import numpy as np

from goalreel.environments.drawing.block_store import SIDE, BlockFrame, BlockStore, grid

_EDGE = 2  # pixels that antialiasing reaches beyond a shape's corners


class KeptSurface:
    """A ground, and what is drawn over it for a frame."""

    def __init__(self, size: tuple[int, int]):
        """Begin with white; size: the frame's height and width."""
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # no screen is needed
        import pygame

        self.size, (height, width) = size, size
        rows, columns = grid(size)
        # Whole blocks, upside down as the surface is: below it, as SDL sees it, there is a margin.
        memory = np.full((rows * SIDE, columns * SIDE), 0xFFFFFFFF, np.uint32)
        whole = pygame.image.frombuffer(memory, memory.shape[::-1], "RGBX")
        self.surface = whole.subsurface((0, len(memory) - height, width, height))
        self._pixels = memory[::-1]
        self._blocks = self._pixels.reshape(rows, SIDE, columns, SIDE).swapaxes(1, 2)
        self._store: BlockStore | None = None  # of the ground's numbers

    def set_background(self) -> None:
        """Take what is drawn for the ground."""
        self._fill_margins()
        self._ground, self._under = self.surface.copy(), self._pixels.copy()

    def box(self, points: Iterable[tuple[float, float]]):
        """Return the box of the surface in which shapes may be that span some points."""
        across, down = zip(*points, strict=True)
        left, top = int(min(across)) - _EDGE, int(min(down)) - _EDGE
        right, bottom = int(max(across)) + _EDGE + 1, int(max(down)) + _EDGE + 1
        return self.surface.get_rect().clip((left, top, right - left, bottom - top))

    def polygon(self, points: list, color: tuple) -> list:
        """Draw a polygon as Gymnasium's renderers do; return the points that it spans."""
        from pygame import gfxdraw

        gfxdraw.aapolygon(self.surface, points, color)
        gfxdraw.filled_polygon(self.surface, points, color)
        return points

    def disc(self, x: int, y: int, radius: int, color: tuple) -> list:
        """Draw a disc as Gymnasium's renderers do; return the points that it spans."""
        from pygame import gfxdraw

        gfxdraw.aacircle(self.surface, x, y, radius, color)
        gfxdraw.filled_circle(self.surface, x, y, radius, color)
        return [(x - radius, y - radius), (x + radius, y + radius)]

    def restore(self, boxes: list) -> None:
        """Draw the ground over boxes."""
        for box in boxes:
            self.surface.blit(self._ground, box, box)

    def read(self, box) -> np.ndarray:
        """Return what a box shows, (h, w, 3) uint8, upright."""
        height = self.size[0]
        pixels = self._pixels[height - box.bottom : height - box.top, box.left : box.right]
        return _rgb(pixels)

    def frame(self, store: BlockStore, boxes: list) -> BlockFrame:
        """Return the frame that is drawn, and mend it; boxes: of all that is not ground."""
        if self._store is not store:
            blocks = self._under.reshape(self._blocks.swapaxes(1, 2).shape).swapaxes(1, 2)
            self._store, self._numbers = store, np.array(store.add_pixels(_rgb(blocks)), np.int32)
        at_margin = any(box.right == self.size[1] or box.top == 0 for box in boxes)
        if at_margin:
            self._fill_margins()
        numbers = self._numbers.copy()
        places = np.concatenate([self._changed(box) for box in boxes])
        row, column = np.divmod(places, self._blocks.shape[1])
        numbers[places] = store.add_pixels(_rgb(self._blocks[row, column]))
        self.restore(boxes)
        if at_margin:
            self._fill_margins()
        return BlockFrame(self.size, numbers, store)

    def _changed(self, box) -> np.ndarray:
        """Return the places in a box whose blocks are not the ground's."""
        if not box:
            return np.empty(0, int)
        height = self.size[0]
        row, column = (height - box.bottom) // SIDE, box.left // SIDE
        rows, end = -(-(height - box.top) // SIDE) - row, -(-box.right // SIDE)
        part = np.s_[row * SIDE : (row + rows) * SIDE, column * SIDE : end * SIDE]
        differ = (self._pixels[part] != self._under[part]).reshape(rows, SIDE, -1, SIDE)
        # A reduction over few truth values takes long.
        found = np.flatnonzero(differ.any(axis=1).view(np.uint64).any(axis=2))
        r, c = np.divmod(found, end - column)
        return (row + r) * self._blocks.shape[1] + column + c

    def _fill_margins(self) -> None:
        """Repeat the frame's last column and row up to the end of their blocks."""
        height, width = self.size
        self._pixels[:, width:] = self._pixels[:, width - 1 : width]
        self._pixels[height:] = self._pixels[height - 1]


def _rgb(pixels: np.ndarray) -> np.ndarray:
    """Return pixels of red, green, blue and nothing, (...) uint32, without that: (..., 3) uint8."""
    four = np.ascontiguousarray(pixels).view(np.uint8).reshape(*pixels.shape, 4)
    three = np.empty((*pixels.shape, 3), np.uint8)
    for channel in range(3):  # copying three bytes at a time takes thrice as long
        three[..., channel] = four[..., channel]
    return three
