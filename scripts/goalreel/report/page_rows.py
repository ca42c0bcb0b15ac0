"""The rows of the report's page: the table of episodes as the page's script takes it."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from goalreel.errors import GoalreelError

# Rows of a page. One of a million, 48 MB, took 123 MB of Chromium's heap; larger were not tried.
MAX_ROWS = 2_000_000
_PIECE_ROWS = 100_000  # rows of an object of the script; the page holds them in typed arrays
# As captions.outcome names them.
_OUTCOMES = {"reach": ("reached", "failed"), "episode": ("terminated", "truncated", "stopped")}
_ENDINGS = {"reach": ("reached",), "episode": ("terminated", "truncated")}  # columns of the table


@dataclass(frozen=True)
class Totals:
    """What the rows add up to."""

    episodes: int
    outcomes: dict[str, int]  # how many episodes have each
    steps: dict[str, float]  # see `spread_of`
    returns: dict[str, float]
    decimals: int  # that the returns are shown with


def spread_of(column: pd.Series, numbers: pd.Series) -> dict[str, float]:
    """Return how a column's numbers are spread.

    Args:
        column: the numbers.
        numbers: each row's reach or episode.

    Returns:
        mean, std (of these episodes themselves, divided by their number), median, least and most;
        the first row that has the least or the most, and its reach or episode.
    """
    values = column.to_numpy()
    spread = {"mean": values.mean(), "std": values.std(), "median": np.median(values)}
    for name, row in (("least", values.argmin()), ("most", values.argmax())):
        spread |= {name: values[row], f"{name}_row": row, f"{name}_number": numbers.iloc[row]}
    return {name: value.item() for name, value in spread.items()}


def columns(unit: str) -> tuple[str, ...]:
    """Return the table's columns that a page takes; unit: "reach" or "episode"."""
    common = (unit, "seed", "steps", "return", "start_s")
    return (*common, *_ENDINGS[unit], *(["attempt"] if unit == "reach" else []))


def outcomes(rows: pd.DataFrame, unit: str) -> np.ndarray:
    """Return the outcome of each row, as a number: 0 where it reached, or was terminated."""
    ended = [rows[name].to_numpy() for name in _ENDINGS[unit]]
    return np.select(ended, range(len(ended)), len(ended)).astype(np.int8)


def write_rows(path: Path, table: pd.DataFrame, fps: int, unit: str) -> Totals:
    """Write the page's rows to `path`, a script; table: `columns(unit)`, in film order.

    Raises GoalreelError if there are more than a page can hold.
    """
    if len(table) > MAX_ROWS:
        raise GoalreelError(
            f"the report's page lists up to {MAX_ROWS:,} episodes, and the film has more; "
            f"film fewer for a report. episodes.csv lists all of them."
        )
    names, ended, decimals = _OUTCOMES[unit], outcomes(table, unit), _decimals(table["return"])
    frames = (table["start_s"] * fps).round().astype(np.int64)
    table = table.assign(outcome=ended, frame=frames)
    pieces = (_data(table[i : i + _PIECE_ROWS], unit) for i in range(0, len(table), _PIECE_ROWS))
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write(f'const GOALREEL = {{"fps":{fps},"unit":"{unit}",')
        stream.write(f'"outcomes":{json.dumps(names)},"pieces":[\n')
        for number, piece in enumerate(pieces):
            stream.write(",\n" * (number > 0) + piece)
        stream.write(f'\n],"decimals":{decimals}}};\n')
    found = dict(zip(names, np.bincount(ended, minlength=len(names)).tolist(), strict=True))
    spreads = (spread_of(table[name], table[unit]) for name in ("steps", "return"))
    return Totals(len(table), found, *spreads, decimals)


def _data(rows: pd.DataFrame, unit: str) -> str:
    """Return rows as JSON, by columns so that no name is repeated in each row."""
    named = {"number": unit, "seed": "seed", "steps": "steps"}
    named |= {"attempt": "attempt"} if unit == "reach" else {}
    values = {name: rows[column].tolist() for name, column in named.items()}
    # JavaScript's numbers are exact up to 2**53; a larger seed is a text.
    values["seed"] = [seed if seed <= 1 << 53 else str(seed) for seed in values["seed"]]
    values["return"] = rows["return"].round(6).tolist()
    values |= {name: rows[name].tolist() for name in ("outcome", "frame")}
    return json.dumps(values, separators=(",", ":"))


def _decimals(returns: pd.Series) -> int:
    """Return with how many decimals returns are shown: about four digits in all."""
    if (returns == returns.round()).all():
        return 0
    largest = returns.abs().max()
    return 1 if largest >= 1000 else 2 if largest >= 10 else 3
