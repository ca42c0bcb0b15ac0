"""The monitor of a training from pixels: a line every few seconds, also as a table and a plot.

Counters run from the training's start, a stop in between included; rates are those since the
sample before.
"""

import csv
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from goalreel.cli import say
from goalreel.files.atomic import replacing

EVERY = 5.0  # seconds
COLUMNS = (
    *("seconds", "decisions", "decisions_per_s", "updates", "updates_per_s", "samples", "drops"),
    *("buffer", "queue", "ahead", "loss", "td_error", "episodes", "return", "distance"),
    *("evaluation", "epsilon", "blocked", "learning", "restarts", "gpu"),
)
_PANELS = (
    ("return", (("return", "latest 100 games"), ("evaluation", "greedy evaluation"))),
    ("loss", (("loss", "loss"), ("td_error", "TD error"))),
    ("decisions per second", (("decisions_per_s", "taken in"),)),
    ("share of time", (("blocked", "collectors blocked"), ("learning", "learner busy"))),
)


_DIGITS = {"seconds": 3, "decisions_per_s": 1, "updates_per_s": 3}
_DIGITS |= dict.fromkeys(("epsilon", "blocked", "learning"), 4)


class Monitor:
    """Writes each sample into the table at once, for other readers, and for after a crash.

    Attributes:
        rows: the table so far, cells below COLUMNS.
    """

    def __init__(self, first: Mapping, total: int, rows: Sequence[Sequence], table: Path):
        """Begin the file `table` with the rows of a training that is resumed; total: decisions."""
        self.rows, self._table = [list(row) for row in rows], table
        write_rows(table, rows)
        self._before, self._total, self._at = first, total, time.monotonic()

    def due(self) -> bool:
        """Return whether it is time for another sample."""
        return time.monotonic() - self._at >= EVERY

    def take(self, sample: Mapping) -> None:
        """Write the line and the row of a sample.

        sample: the columns without rates; `blocked` and `learning` are the seconds up to now.
        """
        row = _row(self._before, sample)
        self._before, self._at = sample, time.monotonic()
        self.rows.append(row)
        with self._table.open("a", newline="") as stream:
            _write(stream, [row])
        say(_line(dict(zip(COLUMNS, row, strict=True)), self._total))


def write_rows(path: Path, rows: Sequence[Sequence]) -> None:
    """Write a monitor's table as CSV."""
    with replacing(path) as temporary, temporary.open("w", newline="") as stream:
        _write(stream, [COLUMNS, *rows])


def _write(stream, rows: Sequence[Sequence]) -> None:
    csv.writer(stream, lineterminator="\n").writerows(rows)  # None is an empty cell


def _row(before: Mapping, sample: Mapping) -> list[float | int | None]:
    passed = max(sample["seconds"] - before["seconds"], 1e-9)

    def rate(name: str) -> float:
        return (sample[name] - before[name]) / passed

    row = sample | {f"{name}_per_s": rate(name) for name in ("decisions", "updates")}
    row |= {name: min(rate(name), 1.0) for name in ("blocked", "learning")}
    return [_rounded(name, row[name]) for name in COLUMNS]


def _rounded(name: str, value: float | None) -> float | int | None:
    if not isinstance(value, float):
        return value
    if name in _DIGITS:
        return round(value, _DIGITS[name])
    return None if math.isnan(value) else float(f"{value:.6g}")


def _line(row: dict, total: int) -> str:
    def cell(name: str, form: str = ",") -> str:
        return "-" if row[name] is None else format(row[name], form)

    return (
        f"{row['seconds']:,.0f} s: {cell('decisions')} of {total:,} decisions, "
        f"{cell('decisions_per_s', ',.0f')}/s; {cell('updates')} updates, "
        f"{cell('updates_per_s', '.2f')}/s; loss {cell('loss', '.3g')}, TD error "
        f"{cell('td_error', '.3g')}; return {cell('return', '.1f')}, distance "
        f"{cell('distance', '.2f')} over {cell('episodes')} episodes, evaluation "
        f"{cell('evaluation', '.1f')}; epsilon {cell('epsilon', '.2f')}; buffer {cell('buffer')}, "
        f"queue {cell('queue')} of at most {cell('ahead')}, drops {cell('drops')}; collectors "
        f"blocked {cell('blocked', '.0%')}, learner busy {cell('learning', '.0%')}, restarts "
        f"{cell('restarts')}, GPU {cell('gpu', '.0f')}%"
    ).replace(", GPU -%", "")


def gpu_use() -> Callable[[], float | None]:
    """Return a function that gives the GPU's use in percent; None where that is unknown.

    PyTorch asks NVIDIA's library where `nvidia-ml-py` is installed.
    """
    import torch

    def used() -> float | None:
        try:
            return float(torch.cuda.utilization())
        except Exception:  # no GPU, no library, no right to ask: of many kinds
            return None

    return used if torch.cuda.is_available() and used() is not None else lambda: None


def plot_training(path: str | os.PathLike, rows: Sequence[Sequence], game: str, spec: str) -> None:
    """Draw the curves of a monitor's table, rows below COLUMNS, as SVG."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter, PercentFormatter

    from goalreel.files.svg_plot import FILL, MARK, Caption, save, styled

    with styled():
        figure = Figure(figsize=(8, 5.2))
        panels = figure.subplots(2, 2, sharex=True)
        for axes, (title, curves) in zip(panels.flat, _PANELS, strict=True):
            for (name, label), line, ink in zip(curves, ("-", "--"), (FILL, MARK), strict=False):
                places = COLUMNS.index("decisions"), COLUMNS.index(name)
                points = [[row[place] for place in places] for row in rows]
                points = [point for point in points if None not in point]
                axes.plot(*zip(*points, strict=True) if points else ((), ()), line, color=ink,
                          label=label, marker="." if len(points) == 1 else None)  # fmt: skip
            axes.set(ylabel=title)
            axes.legend(frameon=False, fontsize=8)
            if title == "share of time":
                axes.set(ylim=(-0.02, 1.02))
                axes.yaxis.set_major_formatter(PercentFormatter(1))
        for axes in panels[1]:
            axes.set(xlabel="decisions")
            axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        text = (
            f"Learning {game} from pixels: return, loss, speed, and who waited, over the decisions."
        )
        save(figure, path, Caption("Training from pixels", text, spec))
