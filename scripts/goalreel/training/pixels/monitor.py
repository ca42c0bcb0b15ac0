"""The monitor of a training from pixels: a line every few seconds, and the same as rows of a table.

What is looked at is a `Look`, whose counters run from the training's start, a stop in between
included; rates are those since the look before. The plot of the table stands in monitor_plot.
"""

import csv
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from goalreel.cli import say
from goalreel.files.atomic import replacing

EVERY = 5.0  # seconds
COLUMNS = (
    *("seconds", "frames", "fps", "batches", "batches_per_s", "samples", "drops", "buffer"),
    *("queue", "loss", "td_error", "episodes", "return", "distance", "epsilon", "blocked"),
    *("learning", "restarts", "gpu"),
)


@dataclass(frozen=True)
class Look:
    """What can be seen of a training at a time.

    seconds: of work; frames: processed, steps of environments whose outcome has reached the replay
    buffer; batches, samples: learned from; drops: steps that full rings did not take
    buffer, queue: steps in the replay buffer and in the rings; loss, td_error: of the latest update
    episodes: games that have ended; return_, distance: means over the latest of them, nan for none
    blocked: seconds that collectors waited for room, of all together; learning: seconds that the
    learner learned; collectors: how many share `blocked`; restarts: of them
    gpu: percent, None where there is none or it is not told
    """

    seconds: float
    frames: int
    batches: int
    samples: int
    drops: int
    buffer: int
    queue: int
    loss: float
    td_error: float
    episodes: int
    return_: float
    distance: float
    epsilon: float
    blocked: float
    learning: float
    collectors: int
    restarts: int
    gpu: float | None


class Monitor:
    """Takes looks, and writes each into the table at once, for whoever looks on, or after a crash.

    rows: the table so far, cells below COLUMNS
    """

    def __init__(self, first: Look, total: int, rows: Sequence[Sequence], table: Path):
        """Begin the file `table` anew.

        total: frames of the whole training; rows: of the training that goes on here.
        """
        self.rows, self._table = [list(row) for row in rows], table
        write_rows(table, rows)
        self._before, self._total, self._at = first, total, time.monotonic()

    def due(self) -> bool:
        """Tell whether it is time for another look."""
        return time.monotonic() - self._at >= EVERY

    def take(self, look: Look) -> None:
        """Write the line and the row."""
        row = _row(self._before, look)
        self._before, self._at = look, time.monotonic()
        self.rows.append(row)
        with self._table.open("a", newline="") as stream:
            _writer(stream).writerow(_cells(row))
        say(_line(dict(zip(COLUMNS, row, strict=True)), self._total))


def write_rows(path: Path, rows: Sequence[Sequence]) -> None:
    """Write a monitor's table as CSV."""
    with replacing(path) as temporary, temporary.open("w", newline="") as stream:
        table = _writer(stream)
        table.writerow(COLUMNS)
        table.writerows(map(_cells, rows))


def _writer(stream: TextIO):
    return csv.writer(stream, lineterminator="\n")


def _cells(row: Sequence) -> list:
    return ["" if cell is None else cell for cell in row]


def _row(before: Look, look: Look) -> list[float | int | None]:
    passed = max(look.seconds - before.seconds, 1e-9)
    fps = (look.frames - before.frames) / passed
    speed = (look.batches - before.batches) / passed
    blocked = (look.blocked - before.blocked) / passed / look.collectors
    learning = (look.learning - before.learning) / passed
    return [
        *(round(look.seconds, 3), look.frames, round(fps, 1), look.batches, round(speed, 3)),
        *(look.samples, look.drops, look.buffer, look.queue),
        *(_known(look.loss), _known(look.td_error), look.episodes),
        *(_known(look.return_), _known(look.distance), round(look.epsilon, 4)),
        *(round(min(blocked, 1.0), 4), round(min(learning, 1.0), 4), look.restarts, look.gpu),
    ]


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(f"{value:.6g}")


def _line(row: dict, total: int) -> str:
    def told(name: str, form: str = ",") -> str:
        return "-" if row[name] is None else format(row[name], form)

    return (
        f"{row['seconds']:,.0f} s: {told('frames')} of {total:,} frames, {told('fps', ',.0f')} FPS;"
        f" {told('batches')} batches, {told('batches_per_s', '.2f')}/s; loss {told('loss', '.3g')},"
        f" TD error {told('td_error', '.3g')}; return {told('return', '.1f')}, distance "
        f"{told('distance', '.2f')} over {told('episodes')} episodes; epsilon "
        f"{told('epsilon', '.2f')}; buffer {told('buffer')}, queue {told('queue')}, drops "
        f"{told('drops')}; collectors blocked {told('blocked', '.0%')}, learner busy "
        f"{told('learning', '.0%')}, restarts {told('restarts')}, GPU {told('gpu', '.0f')}%"
    ).replace(", GPU -%", "")


def gpu_use() -> Callable[[], float | None]:
    """Return a function that tells how busy the GPU is, in percent; None where that is not known.

    It is for PyTorch to tell, which asks NVIDIA's library where `nvidia-ml-py` is installed.
    """
    import torch

    def used() -> float | None:
        try:
            return float(torch.cuda.utilization())
        except Exception:  # no GPU, no library, no right to ask: of many kinds
            return None

    return used if torch.cuda.is_available() and used() is not None else lambda: None
