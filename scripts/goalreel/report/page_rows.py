"""Write the table of episodes as JavaScript data for the report."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from goalreel.errors import GoalreelError

# The most rows of a report. One million rows (48 MB) took 123 MB of Chromium's heap.
MAX_ROWS = 2_000_000
_PIECE_ROWS = 100_000  # rows per object in the script
# The names of captions.outcome. Columns of the table decide all but the last one.
_OUTCOMES = {"reach": ("reached", "failed"), "episode": ("terminated", "truncated", "stopped")}
_SHARES = ("share", "share_low", "share_high")


@dataclass(frozen=True)
class Totals:
    """Summary statistics of the rows."""

    episodes: int
    outcomes: dict[str, int]  # number of episodes by outcome
    steps: dict[str, float]  # see `spread_of`
    returns: dict[str, float]
    decimals: int  # decimals of the returns shown


def spread_of(column: pd.Series, numbers: pd.Series) -> dict[str, float]:
    """Return the median, least and most of a column.

    For least and most also the first row with that value (least_row), and its reach or episode
    (least_number), which is in `numbers`.
    """
    values = column.to_numpy()
    spread = {"median": np.median(values)}
    for name, row in (("least", values.argmin()), ("most", values.argmax())):
        spread |= {name: values[row], f"{name}_row": row, f"{name}_number": numbers.iloc[row]}
    return {name: value.item() for name, value in spread.items()}


def columns(unit: str, is_selection: bool = False) -> tuple[str, ...]:
    """Return the columns that the report needs from the table, with shares if it is of some."""
    common = (unit, "seed", "steps", "return", "start_s", *_OUTCOMES[unit][:-1])
    return common + ("attempt",) * (unit == "reach") + _SHARES * is_selection


def outcomes(rows: pd.DataFrame, unit: str) -> np.ndarray:
    """Return the outcome of each row as an index: 0 for reached or terminated, and so on."""
    ended = [rows[name].to_numpy() for name in _OUTCOMES[unit][:-1]]
    return np.select(ended, range(len(ended)), len(ended)).astype(np.int8)


def write_rows(
    path: Path, table: pd.DataFrame, fps: int, unit: str, curves: Mapping | None = None
) -> Totals:
    """Write the rows of a table with `columns(unit)`, in film order, and signal_curves to a script.

    Raises GoalreelError if there are more rows than a page can hold.
    """
    if len(table) > MAX_ROWS:
        raise GoalreelError(
            f"report: A report can list {MAX_ROWS:,} episodes, and the film has {len(table):,}. "
            f"Film fewer episodes, or read episodes.csv."
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
        signals = json.dumps(curves, separators=(",", ":"))
        stream.write(f'\n],"signals":{signals},"decimals":{decimals}}};\n')
    found = dict(zip(names, np.bincount(ended, minlength=len(names)).tolist(), strict=True))
    spreads = (spread_of(table[name], table[unit]) for name in ("steps", "return"))
    return Totals(len(table), found, *spreads, decimals)


def _data(rows: pd.DataFrame, unit: str) -> str:
    """Return rows as JSON by column, which does not repeat the names in each row."""
    named = {"number": unit, "seed": "seed", "steps": "steps"}
    named |= {"attempt": "attempt"} if unit == "reach" else {}
    values = {name: rows[column].tolist() for name, column in named.items()}
    # JavaScript's numbers are exact up to 2**53, so larger seeds become strings.
    values["seed"] = [seed if seed <= 1 << 53 else str(seed) for seed in values["seed"]]
    values["return"] = rows["return"].round(6).tolist()
    values |= {name: rows[name].tolist() for name in ("outcome", "frame", *_SHARES) if name in rows}
    return json.dumps(values, separators=(",", ":"))


def _decimals(returns: pd.Series) -> int:
    """Return the number of decimals that gives returns about four digits."""
    if (returns == returns.round()).all():
        return 0
    largest = returns.abs().max()
    return 1 if largest >= 1000 else 2 if largest >= 10 else 3
