"""The grid: all filmed episodes, playing next to each other on the pages of one video.

Episodes are in film order, along the rows of a page and then page after page.
"""

import contextlib
import itertools
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from goalreel.arrays import paste
from goalreel.encoding.x264 import encode_video
from goalreel.encoding.yuv import planar, planes
from goalreel.errors import GoalreelError
from goalreel.provenance.spec import Spec
from goalreel.rendering.overlay import add_bands, fitting_scale
from goalreel.rendering.text import Color, draw_text
from goalreel.views.filmed_episodes import FilmedEpisode, FilmedEpisodes
from goalreel.views.scaled_frames import ScaledFrames

PAPER: Color = (33, 37, 43)
INK: Color = (255, 255, 255)
_GUTTER = 2  # pixels between cells: even, as chroma samples cover 2x2 pixels
_MAX_WIDTH, _MAX_HEIGHT = 1920, 1080  # of the video
_MIN_WIDTH, _MIN_HEIGHT = 64, 16  # of a cell; x264 needs 16 rows
_MAX_ROWS = 20  # and columns, as in configuration/options.py
_NEARLY = 0.85  # the share of a preferred size that is as good
_MIN_CELLS, _MAX_CELLS = 8, 12  # of a page if neither rows nor columns are given
# The widths of a page in preferred font sizes: 12 pixels if the report shows a page in 560 pixels.
_LETTERS = 48
_MARGIN = 12  # empty pixels of a band, on both sides together


@dataclass(frozen=True)
class Layout:
    """The size and place of the cells of a page."""

    rows: int
    columns: int
    cell: tuple[int, int]  # width and height of a cell's frame, even
    band: int = 0  # rows above each frame for its captions, even

    @property
    def size(self) -> tuple[int, int]:
        """The width and height of the page."""
        bottom, right = self.corner(self.rows * self.columns - 1)
        return right + self.cell[0], bottom + self.cell[1]

    def corner(self, number: int) -> tuple[int, int]:
        """Return the top and left of a cell's frame. Cells are numbered along the rows."""
        row, column = divmod(number, self.columns)
        pitch = self.band + self.cell[1] + _GUTTER
        return row * pitch + self.band, column * (self.cell[0] + _GUTTER)


def choose_layout(
    episodes: int, rows: int | None, columns: int | None, frame: tuple[int, int], captions: int
) -> Layout:
    """Return the layout for a number of episodes.

    If neither rows nor columns are given, it balances large frames against few pages, and no page
    has an empty row. If one is given, the other is the largest that hardly shrinks frames. For the
    other arguments see `layout`. Raises GoalreelError if the cells would be too small.
    """
    free = not (rows or columns)
    few = episodes if episodes <= _MAX_CELLS else _MIN_CELLS
    fewest, most = (few, _MAX_CELLS) if free else (1, math.inf)
    sides, found = range(1, _MAX_ROWS + 1), []
    for r, c in itertools.product([rows] if rows else sides, [columns] if columns else sides):
        empty = (not rows and (r - 1) * c >= episodes) or (not columns and r * (c - 1) >= episodes)
        sparse = free and r * c - episodes // -(-episodes // (r * c)) >= c
        if not (empty or sparse) and fewest <= r * c <= most:
            with contextlib.suppress(GoalreelError):
                found.append(layout(r, c, frame, captions))
    if not found:
        return layout(rows or 1, columns or 1, frame, captions)

    largest = max(math.prod(shape.cell) for shape in found)

    def score(shape: Layout) -> tuple:
        area, count, (width, height) = math.prod(shape.cell), shape.rows * shape.columns, shape.size
        if not free:
            return area >= _NEARLY * largest, count
        pages = -(-episodes // count)
        # The page's distance from the video's aspect ratio, and the share of used cells.
        wide = abs(math.log(width / height * _MAX_HEIGHT / _MAX_WIDTH))
        is_legible = shape.band >= _NEARLY * _band_rows(width // _LETTERS)
        return is_legible, area / pages, episodes / (pages * count) - wide

    return max(found, key=score)


def layout(rows: int, columns: int, frame: tuple[int, int], captions: int) -> Layout:
    """Return the layout whose frames are as large as fit, but no larger than in the film.

    `frame` is the width and height of frames, `captions` the number of captions above each. Raises
    GoalreelError if the cells would be too small.
    """
    wide = (_MAX_WIDTH + _GUTTER) // columns - _GUTTER
    tall = (_MAX_HEIGHT + _GUTTER) // rows - _GUTTER

    def fit(band: int) -> tuple[int, int]:
        times = min(wide // frame[0], (tall - band) // frame[1], fitting_scale(frame[::-1]))
        # An integer factor if frames fit, else a fraction.
        scales = [(times, 1)] if times > 0 else [(wide, frame[0]), (tall - band, frame[1])]
        over, under = min(scales, key=lambda scale: scale[0] / scale[1])
        return tuple(max(side * over // under & ~1, 0) for side in frame)

    band = _band_rows(font_size(wide)) * captions
    width, height = fit(band)
    if captions == 1:
        most = max(tall // 3 & ~1, band)
        needed = min(_band_rows(_legible_size(width, columns)), most)
        band = min(needed, (tall - height) & ~1)
        if band < _NEARLY * needed:
            width, height = fit(needed)
            band = min(_band_rows(_legible_size(width, columns)), needed)
    if width < _MIN_WIDTH or height < _MIN_HEIGHT:
        raise GoalreelError(
            f"grid: In {rows} rows and {columns} columns, frames of {frame[0]}x{frame[1]} become "
            f"{width}x{height}, below {_MIN_WIDTH}x{_MIN_HEIGHT}. Choose fewer rows or columns."
        )
    return Layout(rows, columns, (width, height), band)


def _band_rows(size: int) -> int:
    """Return the even number of rows of a band for a caption. size: the font size."""
    return round(1.4 * size / 2) * 2


def font_size(width: int) -> int:
    """Return the font size of several captions in a cell of this width."""
    return min(max(round(0.03 * width), 14), 18)


def _legible_size(width: int, columns: int) -> int:
    """Return a caption's font size on the report's page: smaller in columns of about 25 letters."""
    return max(min(width * columns // _LETTERS, width // 12), 14)


def frame_size(filmed: FilmedEpisodes) -> tuple[int, int]:
    """Return the width and height of the frames of a run, which are even."""
    cache, _ = add_bands(next(filmed.episodes()).cache, 1)
    return cache.background.shape[1::-1]


def scaled_movies(
    filmed: FilmedEpisodes, size: tuple[int, int], kept: dict, numbers: Iterable[int] | None = None
) -> Iterator[tuple[FilmedEpisode, Iterator[np.ndarray]]]:
    """Yield episodes and the frames of each at a size. `kept` is that of ScaledFrames."""
    times, cache = max(size[0] // frame_size(filmed)[0], 1), None
    for episode in filmed.episodes(numbers):
        if cache is not episode.cache:  # that of another shard
            cache = episode.cache
            scaled = ScaledFrames(add_bands(cache, times)[0], size, kept)
        yield episode, scaled.frames(episode.frames)


def film_grid(filmed: FilmedEpisodes, path: str | os.PathLike, spec: Spec) -> tuple[int, int]:
    """Film the grid, with a keyframe per page. Return (frames, pages). Raises like `layout`."""
    grid, fps, encoder = (spec.config[key] for key in ("grid", "film.fps", "view_encoder"))
    frames = filmed.rows.steps + 1
    given, template = (grid["rows"], grid["columns"], frame_size(filmed)), grid["caption"]
    shape = choose_layout(len(frames), *given, captions=bool(template))
    # All pages hold about equally many episodes.
    pages = np.array_split(frames, -(-len(frames) // (shape.rows * shape.columns)))
    lengths = [int(page.max()) for page in pages]
    starts = list(itertools.accumulate(lengths, initial=0))[:-1]
    episodes = scaled_movies(filmed, shape.cell, {})
    shown = itertools.chain.from_iterable(
        _page(itertools.islice(episodes, len(page)), shape, template, length)
        for page, length in zip(pages, lengths, strict=True)
    )
    return encode_video(path, shown, shape.size, fps, encoder, spec.text, starts), len(starts)


def _page(
    episodes: Iterable[tuple[FilmedEpisode, Iterator]], shape: Layout, template: str, length: int
) -> Iterator[np.ndarray]:
    """Yield the frames of a page, with a caption above each episode unless `template` is empty."""
    page = np.full((shape.size[1], shape.size[0], 3), PAPER, np.uint8)
    movies, corners = [], []
    for number, (episode, movie) in enumerate(episodes):
        top, left = shape.corner(number)
        if template:
            caption = draw_caption(episode.caption(template), shape.cell[0], shape.band)
            paste(page, caption, top - shape.band, left)
        movies.append(movie)
        corners.append((top, left))
    return page_frames(page, movies, corners, length)


def draw_caption(text: str, width: int, rows: int) -> np.ndarray:
    """Return a caption in the middle of a band, (rows, width, 3) uint8, shrunk or cut to fit."""
    pixels = np.full((rows, width, 3), PAPER, np.uint8)
    words = draw_text(text, round(rows / 1.4), INK, PAPER, max(width - _MARGIN, 2))
    return paste(pixels, words, (rows - words.shape[0]) // 2, (width - words.shape[1]) // 2)


def page_frames(
    page: np.ndarray, movies: Sequence[Iterator], corners: Sequence[tuple[int, int]], length: int
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
