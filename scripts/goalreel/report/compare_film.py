"""Film compared runs: the same seeds side by side, with a mark where an episode first differs."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pandas as pd

from goalreel.arrays import paste
from goalreel.encoding.x264 import encode_video
from goalreel.encoding.yuv import planar
from goalreel.provenance.spec import Spec
from goalreel.rendering.captions import outcome
from goalreel.rendering.text import Color, draw_text
from goalreel.report.compare import ComparedRun
from goalreel.views import grid
from goalreel.views.filmed_episodes import FilmedEpisode

_LINES = 3  # above each side: one for the page, a label, and a status
_MARGIN, _BAR = 8, 4  # pixels next to text, and rows of the bar
_GRAY: Color = (186, 193, 202)
_EQUAL: Color = (72, 79, 89)  # of the bar
_ACCENT: Color = (255, 176, 46)


def film_seeds(
    path: str | os.PathLike,
    runs: Sequence[ComparedRun],
    reasons: Mapping[int, str],
    table: pd.DataFrame,
    spec: Spec,
) -> pd.Series:
    """Film seeds side by side, and return the second of the film at which each starts.

    Each starts with a keyframe. The first run's frames per second apply. An episode that ends
    before the others keeps its last frame, darkened. `reasons` has the seeds in film order, with a
    text for each, and `table` is that of `table_of_seeds`.
    """
    frame_sizes = [grid.frame_size(run.filmed) for run in runs]
    shape = grid.choose_layout(len(runs), None, None, tuple(map(max, *frame_sizes)), _LINES)
    sizes = [grid.layout(shape.rows, shape.columns, size, _LINES).cell for size in frame_sizes]
    shape = replace(shape, cell=tuple(map(max, *sizes)))
    numbers, kept = (run.table["row"].reindex(list(reasons)).dropna() for run in runs), {}
    sides = [
        grid.scaled_movies(run.filmed, size, kept, own.astype(int))
        for run, size, own in zip(runs, sizes, numbers, strict=True)
    ]
    steps = table.loc[list(reasons), [f"steps_{run.name}" for run in runs]].max(axis=1)
    fps, encoder = runs[0].fps, spec.config["view_encoder"]
    lengths = [int(most) + 1 + fps // 2 for most in steps]  # the last frames stay for half a second
    starts = np.cumsum([0, *lengths[:-1]])
    width, size = shape.cell[0], grid.font_size(shape.cell[0])
    tall, _, _ = draw_text("", size, grid.INK, grid.PAPER).shape
    rows = (tall + _BAR + 2) // 2 * 2  # of a status, even
    has_several_envs = len({run.filmed.env for run in runs}) > 1

    def frames() -> Iterator[np.ndarray]:
        for number, (seed, reason) in enumerate(reasons.items()):
            page = np.full((shape.size[1], shape.size[0], 3), grid.PAPER, np.uint8)
            title, place = f"seed {seed} · {reason}", f"{number + 1} of {len(reasons)}"
            _write(page, title, place, round(shape.band / _LINES / 1.4), (grid.INK, _GRAY))
            movies, corners = [], []
            for index, run in enumerate(runs):
                (top, left), is_played = shape.corner(index), seed in run.table.index
                words = [run.name, run.policy if is_played else "not played"]
                words[1:1] = [run.filmed.env] if has_several_envs else []
                label = page[top - rows - tall :, left : left + width]
                _write(label, " · ".join(dict.fromkeys(words)), "", size, (grid.INK, grid.INK))
                if is_played:
                    episode, movie = next(sides[index])
                    is_reference = not index or seed not in runs[0].table.index
                    differs = None if is_reference else table.at[seed, f"differs_{run.name}"]
                    inset = [(shape.cell[i] - sizes[index][i]) // 4 * 2 for i in (0, 1)]
                    movies += [_status(run, episode, differs, (rows, width, 3))]
                    movies += [_with_dark_end(movie, episode.row["steps"] < steps[seed])]
                    corners += [(top - rows, left), (top + inset[1], left + inset[0])]
            yield from grid.page_frames(page, movies, corners, lengths[number])

    encode_video(path, frames(), shape.size, fps, encoder, spec.text, starts.tolist())
    return pd.Series((starts / fps).round(6), list(reasons))


def _status(
    run: ComparedRun, episode: FilmedEpisode, differs: int | None, shape: tuple[int, int, int]
) -> Iterator[np.ndarray]:
    """Yield the line above an episode for each of its frames, in yuv420p."""
    # differs: the first step unlike the first run's, NA without one, None for that run
    row = episode.row
    _, _, rewards = run.steps(run.table.at[row["seed"], "row"])
    for step, value in enumerate([0.0, *np.cumsum(rewards).round(9).tolist()]):
        is_last = step == row["steps"]
        ending = f"{outcome(row, run.filmed.unit)} at " * is_last
        # An episode that ends first differs at the step after its last one.
        is_equal = differs is None or differs is pd.NA or step < min(differs, row["steps"])
        mark = "equal" if is_last and differs is pd.NA else ""
        mark = mark if is_equal else f"differs since step {differs:,}"
        text = f"{ending}step {step:,} · return {value:,.6g}"
        yield _status_line(text, mark, _EQUAL if is_equal else _ACCENT, shape)


@lru_cache(1000)
def _status_line(text: str, mark: str, color: Color, shape: tuple[int, int, int]) -> np.ndarray:
    line = np.full(shape, grid.PAPER, np.uint8)
    line[-_BAR:] = color
    _write(line, text, mark, grid.font_size(shape[1]), (_GRAY, _GRAY if color == _EQUAL else color))
    return planar(line)


def _write(pixels: np.ndarray, left: str, right: str, size: int, inks: tuple[Color, Color]) -> None:
    """Write texts at the top left and the top right."""
    room = pixels.shape[1] - 2 * _MARGIN
    words = draw_text(right, size, inks[1], grid.PAPER, room // 2)
    paste(pixels, words, 0, _MARGIN + room - words.shape[1])
    words = draw_text(left, size, inks[0], grid.PAPER, room - words.shape[1] - _MARGIN)
    paste(pixels, words, 0, _MARGIN)


def _with_dark_end(movie: Iterator[np.ndarray], ends_first: bool) -> Iterator[np.ndarray]:
    """Yield the frames of a movie and, if it ends before others, its last one darkened."""
    for frame in movie:
        yield frame
    if ends_first:
        paper = planar(np.full((frame.shape[0] * 2 // 3, frame.shape[1], 3), grid.PAPER, np.uint8))
        yield frame // 2 + paper // 2
