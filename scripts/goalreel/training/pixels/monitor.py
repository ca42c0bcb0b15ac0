"""Monitor a training from pixels: a line every few seconds, a table and a plot.

Counters include all sessions of the training. Rates are since the previous sample.
"""

import csv
import math
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from goalreel.cli import say
from goalreel.files.atomic import replacing

EVERY = 5.0  # seconds
COLUMNS = (
    *("seconds", "decisions", "decisions_per_s", "updates", "updates_per_s", "samples", "buffer"),
    *("queue", "loss", "td_error", "episodes", "return", "distance", "evaluation", "epsilon"),
    *("blocked", "learning"),
)
_PANELS = (
    ("return", (("return", "latest 100 games"), ("evaluation", "greedy evaluation"))),
    ("loss", (("loss", "loss"), ("td_error", "TD error"))),
    ("decisions per second", (("decisions_per_s", "taken in"),)),
    ("share of time", (("blocked", "collectors blocked"), ("learning", "learner busy"))),
)


class Monitor:
    """Writes each sample to the table at once, so that it can be read during the training."""

    def __init__(self, first: Mapping, total: int, rows: list[list], table: Path):
        """Write the rows so far of a resumed training, to which the monitor adds, to the table.

        `first` is the sample at the start of the session, `total` the number of all decisions.
        """
        self._rows, self._table = rows, table
        write_rows(table, rows)
        self._before, self._total, self._at = first, total, time.monotonic()

    def is_due(self) -> bool:
        """Return whether the next sample is due."""
        return time.monotonic() - self._at >= EVERY

    def take(self, sample: Mapping) -> None:
        """Print and write a sample.

        sample: the columns without rates, and the total seconds `blocked` and `learning`
        """
        before, self._before, self._at = self._before, sample, time.monotonic()
        seconds = max(sample["seconds"] - before["seconds"], 1e-9)
        names = ("decisions", "updates", "blocked", "learning")
        rates = {name: (sample[name] - before[name]) / seconds for name in names}
        row = sample | {f"{name}_per_s": rates[name] for name in ("decisions", "updates")}
        row |= {name: min(rates[name], 1.0) for name in ("blocked", "learning")}
        row = {name: _rounded(row[name]) for name in COLUMNS}
        self._rows.append(list(row.values()))
        write_rows(self._table, self._rows)
        say(_line(row, self._total))


def write_rows(path: Path, rows: Sequence[Sequence]) -> None:
    """Write a monitor's table as CSV."""
    with replacing(path) as temporary, temporary.open("w", newline="") as stream:
        # None is an empty cell.
        csv.writer(stream, lineterminator="\n").writerows([COLUMNS, *rows])


def _rounded(value: float) -> float | int | None:
    if isinstance(value, int):
        return value
    return None if math.isnan(value) else float(f"{value:.6g}")


def _line(row: Mapping, total: int) -> str:
    def cell(name: str, form: str = ",") -> str:
        return "-" if row[name] is None else format(row[name], form)

    return (
        f"{cell('seconds', ',.0f')} s: {cell('decisions')} of {total:,} decisions, "
        f"{cell('decisions_per_s', ',.0f')}/s; {cell('updates')} updates, "
        f"{cell('updates_per_s', '.2f')}/s; loss {cell('loss', '.3g')}, TD error "
        f"{cell('td_error', '.3g')}; return {cell('return', '.1f')}, distance "
        f"{cell('distance', '.2f')} over {cell('episodes')} episodes, evaluation "
        f"{cell('evaluation', '.1f')}; epsilon {cell('epsilon', '.2f')}; buffer {cell('buffer')}, "
        f"queue {cell('queue')}; collectors blocked {cell('blocked', '.0%')}, learner busy "
        f"{cell('learning', '.0%')}"
    )


def plot_training(path: str | os.PathLike, rows: Sequence[Sequence], game: str, spec: str) -> None:
    """Plot the rows of a monitor's table as SVG."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter, PercentFormatter

    from goalreel.files.svg_plot import FILL, MARK, Caption, plot_style, save

    table = dict(zip(COLUMNS, np.array(rows, float).reshape(-1, len(COLUMNS)).T, strict=True))
    with plot_style():
        figure = Figure(figsize=(8, 5.2))
        panels = figure.subplots(2, 2, sharex=True)
        for axes, (title, curves) in zip(panels.flat, _PANELS, strict=True):
            for (name, label), line, ink in zip(curves, ("-", "--"), (FILL, MARK), strict=False):
                marker = "." if np.isfinite(table[name]).sum() == 1 else None
                axes.plot(table["decisions"], table[name], line, color=ink, label=label,
                          marker=marker)  # fmt: skip
            axes.set(ylabel=title)
            axes.legend(frameon=False, fontsize=8)
            if title == "share of time":
                axes.set(ylim=(-0.02, 1.02))
                axes.yaxis.set_major_formatter(PercentFormatter(1))
        for axes in panels[1]:
            axes.set(xlabel="decisions")
            axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        found = "return, loss, speed, and who waited, over the decisions."
        text = f"Learning {game} from pixels: {found}"
        save(figure, path, Caption("Training from pixels", text, spec))
