"""A page of a video: movies that play next to each other, with captions above them."""

from collections.abc import Iterator, Sequence

import numpy as np

from goalreel.arrays import paste
from goalreel.encoding.yuv import planar, planes
from goalreel.rendering.text import Color, draw_text

PAPER: Color = (33, 37, 43)
INK: Color = (255, 255, 255)
# The widths of a page in preferred font sizes: 12 pixels if the report shows a page in 560 pixels.
LETTERS = 48
_MARGIN = 12  # empty pixels of a band, on both sides together


def page_frames(
    page: np.ndarray,
    movies: Sequence[Iterator[np.ndarray]],
    corners: Sequence[tuple[int, int]],
    length: int,
) -> Iterator[np.ndarray]:
    """Yield `length` frames of a page in yuv420p. They share one buffer: use each before the next.

    A movie, also in yuv420p, that ends stays at its last frame. Its corner, top and left, is even.
    `page`, (H, W, 3) uint8, has the pixels around the movies.
    """
    buffer = planar(page)
    shown = planes(buffer)
    for _ in range(length):
        for movie, (top, left) in zip(movies, corners, strict=True):
            if (frame := next(movie, None)) is not None:
                for plane, samples, share in zip(shown, planes(frame), (1, 2, 2), strict=True):
                    paste(plane, samples, top // share, left // share)
        yield buffer


def band_rows(size: int) -> int:
    """Return the even number of rows of a band for a caption. size: the font size."""
    return round(1.4 * size / 2) * 2


def band(text: str, width: int, rows: int) -> np.ndarray:
    """Return a caption in the middle of a band, (rows, width, 3) uint8, shrunk or cut to fit."""
    pixels = np.full((rows, width, 3), PAPER, np.uint8)
    words = draw_text(text, round(rows / 1.4), INK, PAPER, max(width - _MARGIN, 2))
    return paste(pixels, words, (rows - words.shape[0]) // 2, (width - words.shape[1]) // 2)


def font_size(width: int) -> int:
    """Return the font size of several captions in a cell of this width."""
    return min(max(round(0.03 * width), 14), 18)


def legible_size(width: int, columns: int) -> int:
    """Return the font size of a caption that can be read on the report's page.

    In many columns it is smaller, since a caption of about 25 letters has to fit.
    """
    return max(min(width * columns // LETTERS, width // 12), 14)
