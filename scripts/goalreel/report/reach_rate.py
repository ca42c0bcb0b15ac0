"""The reach rate of a policy, from the table of attempts."""

import contextlib
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import pandas as pd

from goalreel.errors import GoalreelError
from goalreel.files.damage import reporting_damage

_DTYPES = dict.fromkeys(("reach", "episode", "attempt", "steps"), "int64")
_DTYPES |= {"seed": "uint64"} | dict.fromkeys(("return", "start_s", "initial_position"), "float64")
_DTYPES |= dict.fromkeys(("reached", "terminated", "truncated"), "bool")
_DEFAULTS = (None, [], {}, "act")  # of a policy's parameters; another is true
_Z = NormalDist().inv_cdf(0.975)  # of a two-sided 95% interval


@dataclass(frozen=True)
class ReachRate:
    """How many attempts of a policy reached the goal."""

    policy: str
    reached: int
    attempts: int
    rate: float  # the share of attempts that reached, 0 to 1
    low: float  # the ends of the rate's 95% interval
    high: float


def reach_rate(attempts_csv: str | os.PathLike, policy: Mapping) -> ReachRate:
    """Return the reach rate that a table of attempts shows. Raises GoalreelError as `read_table`.

    Reaches are filled one attempt after another, so that the number of reaches is fixed and that
    of attempts is not; Wilson's interval, made for a fixed number of attempts, is close to right.
    """
    outcomes = read_table(attempts_csv, ("reached",))["reached"]
    reached, attempts = int(outcomes.sum()), len(outcomes)
    if not attempts:
        raise GoalreelError(f"{attempts_csv}: holds no attempt; delete it and run snakemake again")
    counts, rate = (reached, attempts), reached / attempts
    return ReachRate(policy_label(policy), *counts, rate, *wilson(*counts))


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Return Wilson's 95% score interval for a proportion, without continuity correction.

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference",
    JASA 22 (1927). Unlike the normal approximation it stays within 0 and 1.
    """
    share, z2 = successes / trials, _Z * _Z
    centre = share + z2 / (2 * trials)
    spread = _Z * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials * trials))
    scale = 1 + z2 / trials
    low = 0.0 if successes == 0 else (centre - spread) / scale
    high = 1.0 if successes == trials else (centre + spread) / scale
    return low, high


def read_table(table: str | os.PathLike, columns: Sequence[str]) -> pd.DataFrame:
    """Return a table's rows with the given columns.

    Raises GoalreelError if the file is no such table.
    """
    with reporting_damage(table, "it is not a table of episodes"):
        with contextlib.suppress(ValueError):
            return pd.read_csv(table, usecols=list(columns), dtype=_DTYPES)[list(columns)]
        # Recorded states may have no seed, which is -1.
        dtypes = _DTYPES | {"seed": "int64"}
        return pd.read_csv(table, usecols=list(columns), dtype=dtypes)[list(columns)]


def policy_label(policy: Mapping) -> str:
    """Return a policy in words: "pump, epsilon 0", "sb3 ppo.zip, algorithm PPO".

    Parameters that say nothing, as most are by default, are left out.
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
