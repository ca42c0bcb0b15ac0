"""The rows of the report's page: the table of episodes as the page's script takes it.

They go through memory in pieces, and the page holds them in typed arrays.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from goalreel.errors import GoalreelError

COLUMNS = ("reach", "attempt", "seed", "steps", "return", "start_s")
# Rows of a page. One of a million, 48 MB, opened in Chromium, on a busy machine in 17 seconds, and
# took 123 MB of its heap; larger ones were not tried.
MOST = 2_000_000


@dataclass(frozen=True)
class Totals:
    """What the rows add up to."""

    reached: int  # episodes
    failed: int
    steps: tuple[int, int]  # the fewest and the most
    end: int  # the film's frame after the last episode's

    @property
    def episodes(self) -> int:
        """The number of rows."""
        return self.reached + self.failed


def write_rows(path: Path, pieces: Iterable[pd.DataFrame], fps: int) -> Totals:
    """Write the page's rows to `path`, a script; pieces: of COLUMNS and `reached`, in film order.

    Raises GoalreelError if there are none, or more than a page can hold.
    """
    reached = episodes = end = 0
    least, most = [], []
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write(f'const GOALREEL = {{"fps":{fps},"pieces":[\n')
        for rows in pieces:
            frames = (rows["start_s"] * fps).round().astype(np.int64)
            stream.write(",\n" if episodes else "")
            stream.write(_data(rows, frames))
            reached, episodes = reached + int(rows["reached"].sum()), episodes + len(rows)
            least.append(int(rows["steps"].min()))
            most.append(int(rows["steps"].max()))
            end = int(frames.iloc[-1] + rows["steps"].iloc[-1]) + 1
            if episodes > MOST:
                raise GoalreelError(
                    f"the report's page lists up to {MOST:,} episodes, and the film has more; "
                    f"set reaches lower for a report; episodes.csv lists all of them"
                )
        stream.write("\n]};\n")
    if not episodes:
        raise GoalreelError("the table of episodes is empty; run snakemake again")
    return Totals(reached, episodes - reached, (min(least), max(most)), end)


def _data(rows: pd.DataFrame, frames: pd.Series) -> str:
    """Return rows as JSON, by columns so that no name is repeated in each row."""
    columns = {name: rows[name].tolist() for name in ("reach", "attempt", "seed", "steps")}
    columns["return"] = rows["return"].round(6).tolist()
    columns["reached"] = rows["reached"].astype(np.int8).tolist()
    columns["frame"] = frames.tolist()
    return json.dumps(columns, separators=(",", ":"))
