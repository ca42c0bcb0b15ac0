"""The log of a training: a row for each episode, and one for each second of the clock."""

import csv
from pathlib import Path

import numpy as np

from goalreel.files.atomic import replacing
from goalreel.training.games.car_lanes import Step

COLUMNS = ("kind", "seconds", "frames", "fps", "episode", "steps", "return", "loss", "epsilon",
           "queue", "drops")  # fmt: skip


class Log:
    """Rows, gathered while a training runs.

    queue, drops: steps that wait between playing and learning, and those that were dropped; of a
    training in one process there are none
    """

    def __init__(self, lanes: int):
        """Begin with no rows."""
        self.rows: list[tuple] = []
        self._returns, self._steps = np.zeros(lanes), np.zeros(lanes, np.int64)
        self._losses: list[float] = []
        self._second, self._frames, self._episodes = 0.0, 0, 0

    def learned(self, loss: float) -> None:
        """Take note of a gradient step."""
        self._losses.append(loss)

    def played(self, step: Step, frame: int, seconds: float, epsilon: float, queue=0, drops=0):
        """Take note of a step of all lanes, which ended at `frame`."""
        self._returns += step.rewards
        self._steps += step.lasted
        for lane in np.flatnonzero(step.terminated | step.truncated):
            self._episodes += 1
            row = (self._episodes, int(self._steps[lane]), float(self._returns[lane]))
            self._add("episode", seconds, frame, row, epsilon, queue, drops)
            self._returns[lane], self._steps[lane] = 0.0, 0
        if seconds - self._second >= 1.0:
            self._add("second", seconds, frame, ("", "", ""), epsilon, queue, drops)
            self._second, self._frames, self._losses = seconds, frame, []

    def _add(self, kind, seconds, frame, row, epsilon, queue, drops) -> None:
        passed = seconds - self._second
        fps = (frame - self._frames) / passed if passed > 0 else 0.0
        loss = sum(self._losses) / len(self._losses) if self._losses else ""
        self.rows.append((kind, seconds, frame, fps, *row, loss, epsilon, queue, drops))

    def write(self, path: Path) -> None:
        """Write the log as CSV."""
        with replacing(path) as temporary, temporary.open("w", newline="") as stream:
            table = csv.writer(stream, lineterminator="\n")
            table.writerow(COLUMNS)
            table.writerows(self.rows)
