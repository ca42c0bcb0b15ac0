"""A page of the grid: episodes in their cells, as frame caches that become video like a shard's.

An episode is held on its last frame until the longest of its page has ended.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from goalreel.pictures.frame_cache import FrameCache
from goalreel.pictures.layers import NOTHING, Layer, Patches
from goalreel.pictures.text import Colour, draw_text
from goalreel.views.scaled_frames import Picture, ScaledCache

GUTTER = 2  # pixels between cells: even, as chroma samples cover 2x2 pixels
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
    cell: tuple[int, int]  # width and height of each, even

    @property
    def size(self) -> tuple[int, int]:
        """The picture's width and height."""
        return (
            self.columns * (self.cell[0] + GUTTER) - GUTTER,
            self.rows * (self.cell[1] + GUTTER) - GUTTER,
        )

    def corner(self, number: int) -> tuple[int, int]:
        """Return the top and left of a cell; cells are counted along the rows."""
        row, column = divmod(number, self.columns)
        return row * (self.cell[1] + GUTTER), column * (self.cell[0] + GUTTER)


@dataclass(frozen=True)
class Cell:
    """An episode in its cell."""

    cache: ScaledCache
    frames: range  # which of the cache's are its own
    caption: str  # "" for none


def page_parts(page: Sequence[Cell], shape: Layout) -> Iterator[FrameCache]:
    """Yield a page's frames as frame caches, each of as many frames as memory allows."""
    width, height = shape.cell
    background = np.full((shape.size[1], shape.size[0], 3), _PAPER, np.uint8)
    plates = []
    for number, cell in enumerate(page):
        top, left = shape.corner(number)
        background[top : top + height, left : left + width] = cell.cache.background
        if cell.caption:
            plates.append(_plate_patch(plate(cell.caption, shape.cell), top, left))
    step, end = 0, max(len(cell.frames) for cell in page)
    while step < end:
        first, pixels = step, 0
        layers = [_CellLayer() for _ in page]
        while step < end and pixels <= _SPAN:
            steps = range(step, min(step + _STEPS, end))
            for cell, layer in zip(page, layers, strict=True):
                for frame in (cell.frames[min(s, len(cell.frames) - 1)] for s in steps):
                    pixels += layer.add(cell.cache.picture(frame))
            step = steps.stop
        cells = [layer.layer(f"cell {n}", *shape.corner(n)) for n, layer in enumerate(layers)]
        always = np.zeros(step - first, np.int32)
        cells += [Layer(f"caption {n}", patch, always) for n, patch in enumerate(plates)]
        yield FrameCache(background, tuple(cells), np.array([0, step - first]))


class _CellLayer:
    """What a cell shows, while its pictures are gathered, each once."""

    def __init__(self):
        self._numbers: dict[Picture, int] = {}
        self._index: list[int] = []

    def add(self, picture: Picture | None) -> int:
        """Show a picture on the next frame; return how many pixels that adds."""
        if picture is None:
            self._index.append(NOTHING)
            return 0
        known = len(self._numbers)
        self._index.append(self._numbers.setdefault(picture, known))
        return len(picture.pixels) * (len(self._numbers) - known)

    def layer(self, name: str, top: int, left: int) -> Layer:
        """Return the layer, its pictures moved to the cell's corner."""
        boxes = np.array([picture.box for picture in self._numbers], np.int32).reshape(-1, 4)
        pixels = [np.zeros((0, 3), np.uint8), *(picture.pixels for picture in self._numbers)]
        patches = Patches(boxes + np.array([top, left, 0, 0], np.int32), np.concatenate(pixels))
        return Layer(name, patches, np.array(self._index, np.int32))


def plate(text: str, cell: tuple[int, int]) -> np.ndarray:
    """Return a caption on its plate, (h, w, 3) uint8, both even, for a cell's top left corner.

    cell: its width and height; text that is too long for it is set smaller, then cut.
    """
    size = min(max(round(cell[1] / 20), 9), 18)
    margin = max(size // 2, 2)
    words = draw_text(text, size, _INK, _PAPER, cell[0] - 2 * margin)
    high, wide = words.shape[0] + 2 * (size // 5), words.shape[1] + 2 * margin
    pixels = np.full((high + high % 2, wide + wide % 2, 3), _PAPER, np.uint8)
    pixels[size // 5 : size // 5 + words.shape[0], margin : margin + words.shape[1]] = words
    return pixels


def _plate_patch(pixels: np.ndarray, top: int, left: int) -> Patches:
    box = np.array([[top, left, *pixels.shape[:2]]], np.int32)
    return Patches(box, pixels.reshape(-1, 3))
