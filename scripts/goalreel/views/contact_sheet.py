"""The contact sheet: the first, the middle and the last frame of episodes, a row for each."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from goalreel.arrays import paste
from goalreel.rendering.blocks import enlarged
from goalreel.rendering.frame_cache import FrameCache
from goalreel.rendering.text import Colour, draw_text

_WIDEST, _HIGHEST = 320, 480  # pixels of a thumbnail; in these small frames are enlarged whole
_NARROWEST = 120  # of a column, for what is written below
_SIZE = 15  # of the captions, in pixels
_MARGIN = 24
_GAP = 12  # between thumbnails
_PAPER: Colour = (255, 255, 255)
_INK: Colour = (33, 37, 43)
_GREY: Colour = (98, 105, 115)
_LINE: Colour = (201, 206, 214)  # around a thumbnail


@dataclass(frozen=True)
class Row:
    """An episode on the sheet: its caption and three (H, W, 3) uint8 frames with their steps."""

    caption: str
    frames: Sequence[np.ndarray]
    steps: Sequence[int]


def sheet_row(cache: FrameCache, frames: range, caption: str) -> Row:
    """Return an episode's row; frames: the numbers of its frames in the cache."""
    steps = [0, (len(frames) - 1) // 2, len(frames) - 1]
    return Row(caption, [thumbnail(cache[frames[step]]) for step in steps], steps)


def thumbnail(frame: np.ndarray) -> np.ndarray:
    """Return a frame, (H, W, 3) uint8, at the sheet's width, or a smaller one several times."""
    from PIL import Image

    height, width = frame.shape[:2]
    if width <= _WIDEST:
        return enlarged(frame, max(min(_WIDEST // width, _HIGHEST // height), 1))
    size = (_WIDEST, max(height * _WIDEST // width, 1))
    return np.asarray(Image.fromarray(frame).resize(size, Image.Resampling.LANCZOS))


def draw_sheet(rows: Sequence[Row]) -> np.ndarray:
    """Return the rows as one picture, (h, w, 3) uint8.

    Raises GoalreelError if a caption does not fit.
    """
    height, width = rows[0].frames[0].shape[:2]
    column = max(width, _NARROWEST)
    across = 2 * _MARGIN + len(rows[0].frames) * (column + _GAP) - _GAP
    captions = [draw_text(r.caption, _SIZE, _INK, _PAPER, across - 2 * _MARGIN) for r in rows]
    labels = [
        [draw_text(f"step {n:,}", _SIZE * 0.8, _GREY, _PAPER, column) for n in r.steps]
        for r in rows
    ]
    above, below = captions[0].shape[0] + _GAP // 2, _GAP // 2 + labels[0][0].shape[0]
    pitch = above + height + below + _MARGIN
    sheet = np.full((_MARGIN + len(rows) * pitch, across, 3), _PAPER, np.uint8)
    for number, (row, caption, under) in enumerate(zip(rows, captions, labels, strict=True)):
        top = _MARGIN + number * pitch
        paste(sheet, caption, top, _MARGIN)
        for place, (frame, label) in enumerate(zip(row.frames, under, strict=True)):
            left = _MARGIN + place * (column + _GAP)
            sheet[top + above - 1 : top + above + height + 1, left - 1 : left + width + 1] = _LINE
            paste(sheet, frame, top + above, left)
            paste(sheet, label, top + above + height + _GAP // 2, left)
    return sheet
