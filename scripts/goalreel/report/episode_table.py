"""Read tables of episodes and attempts."""

import os
from collections.abc import Sequence

import pandas as pd

from goalreel.files.damage import reporting_damage

_DTYPES = dict.fromkeys(("reach", "episode", "attempt", "steps"), "int64")
_DTYPES |= dict.fromkeys(("return", "start_s", "initial_position"), "float64")
_DTYPES |= dict.fromkeys(("reached", "terminated", "truncated"), "bool")


def read_table(table: str | os.PathLike, columns: Sequence[str]) -> pd.DataFrame:
    """Read columns of a table of episodes. Raises GoalreelError if the file is not one."""
    with reporting_damage(table, "it is not a table of episodes"):
        # pandas finds the type of seeds: uint64, or int64 for recorded states, whose seed is -1.
        return pd.read_csv(table, usecols=list(columns), dtype=_DTYPES)[list(columns)]
