"""The grid: episodes that play side by side, page after page, as one video.

All filmed episodes are shown, in film order, along the rows of a page and then page after page.
"""

import itertools
import os
from collections.abc import Iterator

from goalreel.encoding import ffmpeg
from goalreel.encoding.x264 import encode_video
from goalreel.encoding.yuv import Yuv420p
from goalreel.errors import GoalreelError
from goalreel.provenance.spec import Spec
from goalreel.views.filmed_episodes import FilmedEpisodes
from goalreel.views.grid_page import GUTTER, Cell, Layout, page_parts
from goalreel.views.scaled_frames import ScaledPictures

_WIDEST, _HIGHEST = 1920, 1080  # of the whole picture
_NARROWEST, _LOWEST = 64, 16  # of a cell; x264 takes no picture below 16


def layout(rows: int, columns: int, frame: tuple[int, int]) -> Layout:
    """Return the grid whose cells are as large as fit, but no larger than the frames.

    frame: the frames' width and height. Raises GoalreelError if the cells would be too small.
    """
    room = (_WIDEST + GUTTER) // columns - GUTTER, (_HIGHEST + GUTTER) // rows - GUTTER
    scales = (room[0], frame[0]), (room[1], frame[1]), (1, 1)
    over, under = min(scales, key=lambda scale: scale[0] / scale[1])
    width, height = (side * over // under & ~1 for side in frame)
    if width < _NARROWEST or height < _LOWEST:
        raise GoalreelError(
            f"a grid of {rows} rows and {columns} columns has cells of {width}x{height} pixels for "
            f"frames of {frame[0]}x{frame[1]}; allowed: {_NARROWEST}x{_LOWEST} and more; choose "
            f"fewer rows or columns"
        )
    return Layout(rows, columns, (width, height))


def film_grid(filmed: FilmedEpisodes, path: str | os.PathLike, spec: Spec) -> tuple[int, int]:
    """Film all episodes as a grid; every page starts with a keyframe.

    Args:
        filmed: the episodes.
        path: the MP4 file.
        spec: with grid (rows, columns, and caption, a template as in captions), film.fps and
            view_encoder; the file keeps it.

    Returns:
        The numbers of frames and of pages.

    Raises:
        GoalreelError: if the grid's cells would be too small or a frame cache cannot be used.
    """
    spec.check_tool("ffmpeg", ffmpeg.version())
    grid, fps, encoder = (spec.config[key] for key in ("grid", "film.fps", "view_encoder"))
    height, width = next(filmed.episodes()).cache.background.shape[:2]
    shape = layout(grid["rows"], grid["columns"], (width, height))
    cells = shape.rows * shape.columns
    frames = filmed.rows.steps + 1
    lengths = [int(frames[i : i + cells].max()) for i in range(0, len(frames), cells)]
    starts = list(itertools.accumulate(lengths, initial=0))[:-1]
    pictures = ScaledPictures((width, height), shape.cell)
    pages = _pages(_cells(filmed, pictures, grid["caption"]), cells)
    parts = (part for page in pages for part in page_parts(page, shape))
    planes = (frame for part in parts for frame in Yuv420p(part).frames())
    written = encode_video(path, planes, shape.size, fps, encoder, spec.text, starts)
    return written, len(starts)


def _cells(filmed: FilmedEpisodes, pictures: ScaledPictures, template: str) -> Iterator[Cell]:
    """Yield every filmed episode in its cell."""
    for episode in filmed.episodes():
        if episode.place[1] == 0:  # the first of its shard
            scaled = pictures.of(episode.cache)
        yield Cell(scaled, episode.frames, episode.caption(template))


def _pages(cells: Iterator[Cell], count: int) -> Iterator[list[Cell]]:
    while page := list(itertools.islice(cells, count)):
        yield page
