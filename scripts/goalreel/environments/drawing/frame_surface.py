"""A pygame surface that keeps its background between frames.

Gymnasium's renderers create, fill, flip, copy and read a whole surface for each frame.
`FrameSurface` draws the background once, upside down like the renderers, then draws the moving
shapes, and compares only their boxes.
"""

import os
from collections.abc import Iterable

import numpy as np

from goalreel.environments.drawing.block_store import SIDE, BlockFrame, BlockStore, grid, rgb

_EDGE = 2  # pixels of antialiasing beyond a shape's corners


def new_image(shape: tuple[int, int]) -> tuple:
    """Return an array, (rows, columns) uint32 of zeros, and a pygame image of the same pixels."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # no screen is needed
    import pygame

    pixels = np.zeros(shape, np.uint32)  # pages that are never written take no time
    return pixels, pygame.image.frombuffer(pixels, shape[::-1], "RGBX")


def draw_polygon(surface, points: list, color: Iterable[int]) -> None:
    """Draw an antialiased polygon on a pygame surface, as Gymnasium's renderers do."""
    from pygame import gfxdraw

    gfxdraw.aapolygon(surface, points, color)
    gfxdraw.filled_polygon(surface, points, color)


class FrameSurface:
    """A background, and the shapes drawn over it for a frame."""

    def __init__(self, size: tuple[int, int]):
        """Start with a white background. size: the frame's height and width."""
        self.size, (height, width) = size, size
        rows, columns = grid(size)
        # Whole blocks. The surface is upside down, and its margin lies below it for SDL.
        memory, whole = new_image((rows * SIDE, columns * SIDE))
        memory[:] = 0xFFFFFFFF
        self.surface = whole.subsurface((0, len(memory) - height, width, height))
        self._pixels = memory[::-1]
        self._blocks = self._pixels.reshape(rows, SIDE, columns, SIDE).swapaxes(1, 2)
        self._store: BlockStore | None = None  # of the background's block numbers

    def set_background(self) -> None:
        """Make the current pixels the background."""
        self._fill_margins()
        self._background, self._clean = self.surface.copy(), self._pixels.copy()

    def box(self, points: Iterable[tuple[float, float]]):
        """Return the box of shapes that span the given points, as a pygame.Rect."""
        x, y = zip(*points, strict=True)
        left, top = int(min(x)) - _EDGE, int(min(y)) - _EDGE
        right, bottom = int(max(x)) + _EDGE + 1, int(max(y)) + _EDGE + 1
        return self.surface.get_rect().clip((left, top, right - left, bottom - top))

    def polygon(self, points: list, color: tuple) -> list:
        """Draw a polygon like Gymnasium's renderers and return its points."""
        draw_polygon(self.surface, points, color)
        return points

    def disc(self, x: int, y: int, radius: int, color: tuple) -> list:
        """Draw a disc like Gymnasium's renderers and return the corners of its box."""
        from pygame import gfxdraw

        gfxdraw.aacircle(self.surface, x, y, radius, color)
        gfxdraw.filled_circle(self.surface, x, y, radius, color)
        return [(x - radius, y - radius), (x + radius, y + radius)]

    def restore(self, boxes: list) -> None:
        """Draw the background over the boxes."""
        for box in boxes:
            self.surface.blit(self._background, box, box)

    def read(self, box) -> np.ndarray:
        """Return the pixels of a box, (h, w, 3) uint8, upright."""
        height = self.size[0]
        pixels = self._pixels[height - box.bottom : height - box.top, box.left : box.right]
        return rgb(pixels)

    def frame(self, store: BlockStore, boxes: list) -> BlockFrame:
        """Return the current frame and restore the background. boxes: of all shapes over it."""
        if self._store is not store:
            blocks = self._clean.reshape(self._blocks.swapaxes(1, 2).shape).swapaxes(1, 2)
            self._store, self._numbers = store, np.array(store.add_pixels(rgb(blocks)), np.int32)
        at_margin = any(box.right == self.size[1] or box.top == 0 for box in boxes)
        if at_margin:
            self._fill_margins()
        numbers = self._numbers.copy()
        places = np.concatenate([self._find_changes(box) for box in boxes])
        row, column = np.divmod(places, self._blocks.shape[1])
        numbers[places] = store.add_pixels(rgb(self._blocks[row, column]))
        self.restore(boxes)
        if at_margin:
            self._fill_margins()
        return BlockFrame(self.size, numbers, store)

    def _find_changes(self, box) -> np.ndarray:
        """Return the indices of a box's blocks that differ from the background."""
        if not box:
            return np.empty(0, int)
        height = self.size[0]
        row, column = (height - box.bottom) // SIDE, box.left // SIDE
        rows, end = -(-(height - box.top) // SIDE) - row, -(-box.right // SIDE)
        part = np.s_[row * SIDE : (row + rows) * SIDE, column * SIDE : end * SIDE]
        differ = (self._pixels[part] != self._clean[part]).reshape(rows, SIDE, -1, SIDE)
        # `any` over few booleans is slow.
        found = np.flatnonzero(differ.any(axis=1).view(np.uint64).any(axis=2))
        r, c = np.divmod(found, end - column)
        return (row + r) * self._blocks.shape[1] + column + c

    def _fill_margins(self) -> None:
        """Repeat the frame's last column and row to the end of their blocks."""
        height, width = self.size
        self._pixels[:, width:] = self._pixels[:, width - 1 : width]
        self._pixels[height:] = self._pixels[height - 1]
