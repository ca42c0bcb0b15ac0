"""A page of the grid: episodes in their cells, as frame caches that become video like a shard's.

A caption stands in a band above its picture, which it does not hide. An episode is held on its last
frame until the longest of its page has ended.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from goalreel.arrays import paste
from goalreel.rendering.frame_cache import FrameCache
from goalreel.rendering.layers import NOTHING, Layer, Patches
from goalreel.rendering.text import Colour, draw_text
from goalreel.views.scaled_frames import Picture, ScaledCache

GUTTER = 2  # pixels between cells: even, as chroma samples cover 2x2 pixels
_MARGIN = 12  # pixels of a band, on both sides together, that are left free
_PAPER: Colour = (33, 37, 43)
_INK: Colour = (255, 255, 255)
# Pixels of pictures that are held at a time, and some more; a Mountain Car page at 3 x 4 has less.
_SPAN = 8_000_000
# Steps that a cell is filled with before the next: what it shows is read in pieces of some steps.
_STEPS = 8


@dataclass(frozen=True)
class Layout:
    """Where the cells of a grid lie."""

    rows: int
    columns: int
    cell: tuple[int, int]  # width and height of each picture, even
    band: int = 0  # rows above each picture, for its caption, even

    @property
    def size(self) -> tuple[int, int]:
        """The picture's width and height."""
        return (
            self.columns * (self.cell[0] + GUTTER) - GUTTER,
            self.rows * self._pitch - GUTTER,
        )

    @property
    def _pitch(self) -> int:
        return self.band + self.cell[1] + GUTTER

    def corner(self, number: int) -> tuple[int, int]:
        """Return the top and left of a cell's picture; cells are counted along the rows."""
        row, column = divmod(number, self.columns)
        return row * self._pitch + self.band, column * (self.cell[0] + GUTTER)


@dataclass(frozen=True)
class Cell:
    """An episode in its cell."""

    cache: ScaledCache
    frames: range  # which of the cache's are its own
    corner: tuple[int, int]  # top and left of its picture in the page, even


def page_parts(page: np.ndarray, cells: Sequence[Cell], hold: int = 0) -> Iterator[FrameCache]:
    """Yield a page's frames as frame caches, each of as many frames as memory allows.

    Args:
        page: what is around the cells, (H, W, 3) uint8, with captions.
        cells: the episodes.
        hold: for how many frames all stand still at the end.
    """
    background = page.copy()
    for cell in cells:
        paste(background, cell.cache.background, *cell.corner)
    step, end = 0, max(len(cell.frames) for cell in cells) + hold
    while step < end:
        first, held = step, set()
        shown: list[list[Picture | None]] = [[] for _ in cells]
        while step < end and sum(len(picture.pixels) for picture in held) <= _SPAN:
            steps = range(step, min(step + _STEPS, end))
            for cell, pictures in zip(cells, shown, strict=True):
                frames = (cell.frames[min(s, len(cell.frames) - 1)] for s in steps)
                pictures += map(cell.cache.picture, frames)
                held.update(filter(None, pictures[-len(steps) :]))
            step = steps.stop
        layers = (
            _layer(f"cell {number}", pictures, *cell.corner)
            for number, (cell, pictures) in enumerate(zip(cells, shown, strict=True))
        )
        yield FrameCache(background, tuple(layers), np.array([0, step - first]))


def _layer(name: str, pictures: Sequence[Picture | None], top: int, left: int) -> Layer:
    """Return what a cell shows, frame by frame, each picture once, moved to the cell's corner."""
    numbers = {picture: n for n, picture in enumerate(filter(None, dict.fromkeys(pictures)))}
    boxes = np.array([picture.box for picture in numbers], np.int32).reshape(-1, 4)
    pixels = [np.zeros((0, 3), np.uint8), *(picture.pixels for picture in numbers)]
    patches = Patches(boxes + np.array([top, left, 0, 0], np.int32), np.concatenate(pixels))
    index = [numbers.get(picture, NOTHING) for picture in pictures]
    return Layer(name, patches, np.array(index, np.int32))


def captioned_page(shape: Layout, captions: Sequence[str]) -> np.ndarray:
    """Return an empty page, (H, W, 3) uint8, with a caption above each cell, "" for none."""
    page = np.full((shape.size[1], shape.size[0], 3), _PAPER, np.uint8)
    for number, text in enumerate(captions):
        if text:
            top, left = shape.corner(number)
            paste(page, band(text, shape), top - shape.band, left)
    return page


def band_rows(width: int) -> int:
    """Return the rows of a band for captions, even; width: of a cell, or of the room for it."""
    return round(1.4 * _size(width) / 2) * 2


def band(text: str, shape: Layout) -> np.ndarray:
    """Return a caption in its band, (h, w, 3) uint8.

    Text that is too long for a cell is set smaller, then cut.
    """
    width = shape.cell[0]
    pixels = np.full((shape.band, width, 3), _PAPER, np.uint8)
    words = draw_text(text, _size(width), _INK, _PAPER, max(width - _MARGIN, 2))
    top, left = (shape.band - words.shape[0]) // 2, (width - words.shape[1]) // 2
    return paste(pixels, words, top, left)


def _size(width: int) -> int:
    """Return the size of a caption's font for a cell of this width."""
    return min(max(round(0.03 * width), 14), 18)
