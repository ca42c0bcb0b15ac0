"""Estimate the reach rate of a policy from the table of attempts."""

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from goalreel.errors import UnusableFileError
from goalreel.files.damage import reporting_damage
from goalreel.report.statistics import share_interval

_DTYPES = dict.fromkeys(("reach", "episode", "attempt", "steps"), "int64")
_DTYPES |= {"seed": "uint64"} | dict.fromkeys(("return", "start_s", "initial_position"), "float64")
_DTYPES |= dict.fromkeys(("reached", "terminated", "truncated"), "bool")
_DEFAULTS = (None, [], {}, "act")  # values of policy parameters that labels omit, as True


@dataclass(frozen=True)
class ReachRate:
    """The share of a policy's attempts that reached the goal."""

    policy: str
    reached: int
    attempts: int
    rate: float  # reached / attempts
    low: float  # the bounds of the 95% confidence interval of the rate
    high: float


def reach_rate(attempts_csv: str | os.PathLike, policy: Mapping) -> ReachRate:
    """Return the reach rate in a table of attempts. Raises GoalreelError like `read_table`.

    A run fixes the number of reaches, while Wilson's interval assumes a fixed number of attempts.
    It is a close approximation here.
    """
    outcomes = read_table(attempts_csv, ("reached",))["reached"]
    reached, attempts = int(outcomes.sum()), len(outcomes)
    if not attempts:
        raise UnusableFileError(attempts_csv, "it has no rows")
    rate = share_interval(reached, attempts)
    return ReachRate(policy_label(policy), reached, attempts, rate.value, rate.low, rate.high)


def read_table(table: str | os.PathLike, columns: Sequence[str]) -> pd.DataFrame:
    """Read columns of a table of episodes. Raises GoalreelError if the file is not one."""
    with reporting_damage(table, "it is not a table of episodes"):
        with contextlib.suppress(ValueError):
            return pd.read_csv(table, usecols=list(columns), dtype=_DTYPES)[list(columns)]
        # Recorded states without a seed have -1.
        dtypes = _DTYPES | {"seed": "int64"}
        return pd.read_csv(table, usecols=list(columns), dtype=dtypes)[list(columns)]


def policy_label(policy: Mapping) -> str:
    """Return a policy's label, such as "pump, epsilon 0" or "sb3 ppo.zip, algorithm PPO".

    The label omits parameters with the values None, True, [], {} and "act".
    """
    name = " ".join(str(policy[key]) for key in ("name", "file") if policy.get(key) is not None)
    others = (
        f"{key} {_short(value)}"
        for key, value in policy.items()
        if key not in ("name", "file") and value is not True and value not in _DEFAULTS
    )
    return ", ".join([name, *others])


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
