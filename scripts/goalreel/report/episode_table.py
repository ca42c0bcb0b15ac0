"""Read tables of episodes and attempts."""

import contextlib
import os
from collections.abc import Sequence

import pandas as pd

from goalreel.files.damage import reporting_damage

_DTYPES = dict.fromkeys(("reach", "episode", "attempt", "steps"), "int64")
_DTYPES |= {"seed": "uint64"} | dict.fromkeys(("return", "start_s", "initial_position"), "float64")
_DTYPES |= dict.fromkeys(("reached", "terminated", "truncated"), "bool")


def read_table(table: str | os.PathLike, columns: Sequence[str]) -> pd.DataFrame:
    """Read columns of a table of episodes. Raises GoalreelError if the file is not one."""
    with reporting_damage(table, "it is not a table of episodes"):
        with contextlib.suppress(ValueError):
            return pd.read_csv(table, usecols=list(columns), dtype=_DTYPES)[list(columns)]
        # Recorded states without a seed have -1.
        dtypes = _DTYPES | {"seed": "int64"}
        return pd.read_csv(table, usecols=list(columns), dtype=dtypes)[list(columns)]
