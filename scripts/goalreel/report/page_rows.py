"""The rows of the report's page: the table of episodes as the page's script takes it.

They go through memory in pieces, and the page holds them in typed arrays.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from goalreel.errors import GoalreelError

# Rows of a page. One of a million, 48 MB, opened in Chromium, on a busy machine in 17 seconds, and
# took 123 MB of its heap; larger ones were not tried.
MOST = 2_000_000
# As captions.outcome names them.
_OUTCOMES = {"reach": ("reached", "failed"), "episode": ("terminated", "truncated", "stopped")}
_ENDINGS = {"reach": ("reached",), "episode": ("terminated", "truncated")}  # columns of the table


@dataclass(frozen=True)
class Spread:
    """How a column's numbers are spread."""

    mean: float
    std: float  # of these episodes themselves, divided by their number
    median: float
    least: float
    most: float
    least_row: int  # the first row that has it
    most_row: int
    least_number: int  # that row's reach or episode
    most_number: int

    @staticmethod
    def of(values: np.ndarray, numbers: np.ndarray) -> "Spread":
        """Return the spread of a column; numbers: each row's reach or episode."""
        rows = [int(values.argmin()), int(values.argmax())]
        middle = float(np.median(values)), *values[rows].tolist()
        return Spread(
            float(values.mean()), float(values.std()), *middle, *rows, *numbers[rows].tolist()
        )


@dataclass(frozen=True)
class Totals:
    """What the rows add up to."""

    outcomes: dict[str, int]  # how many episodes have each
    steps: Spread
    returns: Spread
    decimals: int  # that the returns are shown with
    end: int  # the film's frame after the last episode's

    @property
    def episodes(self) -> int:
        """The number of rows."""
        return sum(self.outcomes.values())


def columns(unit: str) -> tuple[str, ...]:
    """Return the table's columns that a page takes; unit: "reach" or "episode"."""
    common = (unit, "seed", "steps", "return", "start_s")
    return (*common, *_ENDINGS[unit], *(["attempt"] if unit == "reach" else []))


def outcomes(rows: pd.DataFrame, unit: str) -> np.ndarray:
    """Return the outcome of each row, as a number: 0 where it reached, or was terminated."""
    ended = [rows[name].to_numpy() for name in _ENDINGS[unit]]
    return np.select(ended, range(len(ended)), len(ended)).astype(np.int8)


def write_rows(path: Path, pieces: Iterable[pd.DataFrame], fps: int, unit: str) -> Totals:
    """Write the page's rows to `path`, a script; pieces: of `columns(unit)`, in film order.

    Raises GoalreelError if there are none, or more than a page can hold.
    """
    names, counts, episodes, end = _OUTCOMES[unit], 0, 0, 0
    numbers, steps, returns = [], [], []
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write(f'const GOALREEL = {{"fps":{fps},"unit":"{unit}",')
        stream.write(f'"outcomes":{json.dumps(names)},"pieces":[\n')
        for rows in pieces:
            frames = (rows["start_s"] * fps).round().astype(np.int64)
            stream.write(",\n" if episodes else "")
            ended = outcomes(rows, unit)
            stream.write(_data(rows, frames, ended, unit))
            counts, episodes = counts + np.bincount(ended, minlength=3), episodes + len(rows)
            for column, name in ((numbers, unit), (steps, "steps"), (returns, "return")):
                column.append(rows[name].to_numpy())
            end = int(frames.iloc[-1] + rows["steps"].iloc[-1]) + 1
            if episodes > MOST:
                raise GoalreelError(
                    f"the report's page lists up to {MOST:,} episodes, and the film has more; "
                    f"film fewer for a report; "
                    f"episodes.csv lists all of them"
                )
        if not episodes:
            raise GoalreelError("the table of episodes is empty; run snakemake again")
        decimals = _decimals(returns)
        stream.write(f'\n],"decimals":{decimals}}};\n')
    number, step, returned = map(np.concatenate, (numbers, steps, returns))
    spreads = Spread.of(step, number), Spread.of(returned, number)
    found = dict(zip(names, counts.tolist(), strict=False))
    return Totals(found, *spreads, decimals, end)


def _data(rows: pd.DataFrame, frames: pd.Series, ended: np.ndarray, unit: str) -> str:
    """Return rows as JSON, by columns so that no name is repeated in each row."""
    named = {"number": unit, "seed": "seed", "steps": "steps"}
    named |= {"attempt": "attempt"} if unit == "reach" else {}
    values = {name: rows[column].tolist() for name, column in named.items()}
    # JavaScript's numbers are exact up to 2**53; a larger seed is a text.
    values["seed"] = [seed if seed <= 1 << 53 else str(seed) for seed in values["seed"]]
    values["return"] = rows["return"].round(6).tolist()
    values["outcome"] = ended.tolist()
    values["frame"] = frames.tolist()
    return json.dumps(values, separators=(",", ":"))


def _decimals(returns: Sequence[np.ndarray]) -> int:
    """Return with how many decimals returns are shown: about four digits in all."""
    if all((part == np.round(part)).all() for part in returns):
        return 0
    largest = max(float(np.abs(part).max()) for part in returns)
    return 1 if largest >= 1000 else 2 if largest >= 10 else 3
