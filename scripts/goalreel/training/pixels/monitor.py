"""The monitor of a training from pixels: a line every few seconds, also as a table and a plot.

Counters run from the training's start, a stop in between included; rates are those since the
sample before.
"""

import csv
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Sample:
    """The state of a training at a time."""

    seconds: float  # of work
    decisions: int  # whose outcome has reached the replay buffer
    updates: int  # of the learner
    samples: int  # learned from
    drops: int  # steps that full rings did not take
    buffer: int  # steps in the replay buffer
    queue: int  # steps in the rings
    ahead: int  # the most that rings and one batch of the replay feeder hold, the same always
    loss: float  # of the latest update
    td_error: float  # of the latest update
    episodes: int  # games that have ended
    return_: float  # mean over the latest of them, nan for none
    distance: float  # as return_
    evaluation: float  # mean return of the latest evaluation, nan before the first
    epsilon: float
    blocked: float  # seconds that collectors waited for room, of all together
    learning: float  # seconds that the learner learned
    collectors: int  # how many share `blocked`
    restarts: int  # of them
    gpu: float | None  # percent, None where there is none or it is unknown


class Monitor:
    """Writes each sample into the table at once, for other readers, and for after a crash.

    Attributes:
        rows: the table so far, cells below COLUMNS.
    """

    def __init__(self, first: Sample, total: int, rows: Sequence[Sequence], table: Path):
        """Begin the file `table` with the rows of a training that is resumed; total: decisions."""
        self.rows, self._table = [list(row) for row in rows], table
        write_rows(table, rows)
        self._before, self._total, self._at = first, total, time.monotonic()

    def due(self) -> bool:
        """Return whether it is time for another sample."""
        return time.monotonic() - self._at >= EVERY

    def take(self, sample: Sample) -> None:
        """Write the line and the row."""
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


def _row(before: Sample, sample: Sample) -> list[float | int | None]:
    passed = max(sample.seconds - before.seconds, 1e-9)
    rate = (sample.decisions - before.decisions) / passed
    speed = (sample.updates - before.updates) / passed
    blocked = (sample.blocked - before.blocked) / passed / sample.collectors
    learning = (sample.learning - before.learning) / passed
    return [
        *(round(sample.seconds, 3), sample.decisions, round(rate, 1)),
        *(sample.updates, round(speed, 3), sample.samples, sample.drops),
        *(sample.buffer, sample.queue, sample.ahead),
        *(_known(sample.loss), _known(sample.td_error), sample.episodes),
        *(_known(sample.return_), _known(sample.distance), _known(sample.evaluation)),
        round(sample.epsilon, 4),
        *(round(min(blocked, 1.0), 4), round(min(learning, 1.0), 4), sample.restarts, sample.gpu),
    ]


def _known(value: float) -> float | None:
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
