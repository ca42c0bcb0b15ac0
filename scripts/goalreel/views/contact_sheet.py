"""The contact sheet: first, middle and last frame of episodes, large ones cut to what moves."""

from collections.abc import Sequence

import numpy as np
from PIL import Image

from goalreel.arrays import paste, spread
from goalreel.rendering.blocks import enlarge_pixels
from goalreel.rendering.captions import default_captions
from goalreel.rendering.text import Color, draw_text
from goalreel.views.filmed_episodes import FilmedEpisode, FilmedEpisodes
from goalreel.views.poster import GRAY, INK, moving_box

_MAX_WIDTH, _MAX_HEIGHT = 320, 480  # of a thumbnail; small frames are enlarged to fit
_MIN_COLUMN = 120  # of a column, for the text below a thumbnail
_SIZE = 15  # font size of captions, in pixels
_MARGIN = 24
_GAP = 12  # between thumbnails
_PAPER: Color = (243, 244, 246)  # white frames stand out
_SAMPLES = 7  # frames of each episode that show where anything moves
_LINE: Color = (201, 206, 214)  # around a thumbnail


def draw_sheet(filmed: FilmedEpisodes, chosen: Sequence[int]) -> np.ndarray:
    """Return a contact sheet of the chosen episodes in this order, (h, w, 3) uint8."""
    template, _ = default_captions(filmed.unit)
    samples = (e.cache[n] for e in filmed.episodes(chosen) for n in spread(e.frames, _SAMPLES))
    box = moving_box(samples, (_MAX_WIDTH * 2 // 3, _MAX_WIDTH))
    rows = [_draw_row(episode, template, box) for episode in filmed.episodes(chosen)]
    return np.concatenate([np.full_like(rows[0][:_MARGIN], _PAPER), *rows])


def _draw_row(episode: FilmedEpisode, template: str, box: tuple[slice, slice]) -> np.ndarray:
    """Return the caption and the thumbnails of an episode, with their steps and a margin below."""
    last = len(episode.frames) - 1
    steps = 0, last // 2, last
    frames = [thumbnail(episode.cache[episode.frames[step]][box]) for step in steps]
    height, width = frames[0].shape[:2]
    column = max(width, _MIN_COLUMN)
    across = len(steps) * (column + _GAP) - _GAP
    caption = draw_text(episode.caption(template), _SIZE, INK, _PAPER, across)
    labels = [draw_text(f"step {n:,}", _SIZE * 0.8, GRAY, _PAPER, column) for n in steps]
    top = len(caption) + _GAP // 2
    bottom = top + height
    shape = bottom + _GAP // 2 + len(labels[0]) + _MARGIN, across + 2 * _MARGIN, 3
    row = paste(np.full(shape, _PAPER, np.uint8), caption, 0, _MARGIN)
    for place, (frame, label) in enumerate(zip(frames, labels, strict=True)):
        left = _MARGIN + place * (column + _GAP)
        row[top - 1 : bottom + 1, left - 1 : left + width + 1] = _LINE
        paste(row, frame, top, left)
        paste(row, label, bottom + _GAP // 2, left)
    return row


def thumbnail(frame: np.ndarray) -> np.ndarray:
    """Return a frame, (H, W, 3) uint8, reduced to the sheet's width or enlarged by an integer."""
    height, width = frame.shape[:2]
    if width <= _MAX_WIDTH:
        return enlarge_pixels(frame, max(min(_MAX_WIDTH // width, _MAX_HEIGHT // height), 1))
    size = (_MAX_WIDTH, max(height * _MAX_WIDTH // width, 1))
    return np.asarray(Image.fromarray(frame).resize(size, Image.Resampling.LANCZOS))
