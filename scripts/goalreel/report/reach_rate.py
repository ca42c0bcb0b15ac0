"""The reach rate of a policy, from the table of attempts.

Tables are read in pieces, so that memory does not grow with the run.
"""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import pandas as pd

from goalreel.errors import GoalreelError

_ROWS = 100_000
_MOST_STEPS = 10_000_000  # ten times what max_steps allows: counts of steps stay below 100 MB
_DTYPES = dict.fromkeys(("reach", "episode", "attempt", "steps"), "int64")
_DTYPES |= dict.fromkeys(("return", "start_s", "initial_position"), "float64")
_DTYPES |= dict.fromkeys(("reached", "terminated", "truncated"), "bool")
_DEFAULTS = (None, [], {}, "act")  # of a policy's parameters; another is true
_Z = NormalDist().inv_cdf(0.975)  # of a two-sided 95% interval


@dataclass(frozen=True)
class ReachRate:
    """How many attempts of a policy reached the goal."""

    policy: str
    reached: int
    attempts: int
    low: float  # the ends of the rate's 95% interval
    high: float

    @property
    def rate(self) -> float:
        """Return the share of attempts that reached, 0 to 1."""
        return self.reached / self.attempts


def reach_rate(attempts_csv: str | os.PathLike, policy: Mapping) -> ReachRate:
    """Return the reach rate that a table of attempts shows. Raises GoalreelError as `pieces`.

    Reaches are filled one attempt after another, so that the number of reaches is fixed and that
    of attempts is not; Wilson's interval, made for a fixed number of attempts, is close to right.
    """
    reached = attempts = 0
    for piece in pieces(attempts_csv, ("reached",)):
        reached += int(piece["reached"].sum())
        attempts += len(piece)
    if not attempts:
        raise GoalreelError(f"{attempts_csv}: holds no attempt; delete it and run snakemake again")
    return ReachRate(policy_label(policy), reached, attempts, *wilson(reached, attempts))


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


def pieces(table: str | os.PathLike, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
    """Yield a table's rows in pieces, with the given columns.

    Raises GoalreelError if the file is no such table.
    """
    try:
        # Seeds of 64 bits stay whole where a piece is parsed at once (low_memory).
        chosen = {"usecols": set(columns).__contains__, "dtype": _DTYPES, "low_memory": False}
        with pd.read_csv(table, chunksize=_ROWS, **chosen) as reader:
            for piece in reader:
                if "steps" in columns and not piece["steps"].between(0, _MOST_STEPS).all():
                    raise ValueError(f"steps beyond 0 to {_MOST_STEPS}")
                if "seed" in columns and piece["seed"].dtype.kind not in "iu":
                    raise ValueError("a seed that is no whole number")
                yield piece[list(columns)]
    except FileNotFoundError:
        raise GoalreelError(f"{table}: no such file; run snakemake to make it") from None
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise GoalreelError(f"{table}: not a table of episodes ({error}); delete it") from None


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
