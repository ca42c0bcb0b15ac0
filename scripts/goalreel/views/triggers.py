"""Triggers: options that select the episodes and steps of clips, as Gymnasium's save_video."""

from collections.abc import Mapping, Sequence

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.recorders.schedule import capped_cubic_video_schedule
from goalreel.simulation.trajectories import Attempts


def select_episodes(trigger: str | Sequence[int] | Mapping | None, rows: Attempts) -> np.ndarray:
    """Return the numbers of the episodes that a trigger selects, ascending, int64.

    A trigger is "capped_cubic", "all", "failed", a list of numbers, {"every": k}, or k episodes by
    {"best": k}, {"worst": k} or {"median": k} with "by": "return" (the default) or "steps". None
    selects nothing.
    """
    numbers = np.arange(len(rows.steps))
    if trigger is None:
        return numbers[:0]
    if trigger == "capped_cubic":
        return numbers[[*map(capped_cubic_video_schedule, numbers.tolist())]]
    if trigger == "all":
        return numbers
    if trigger == "failed":
        return numbers[~rows.reached]
    if not isinstance(trigger, Mapping):
        return np.intersect1d(numbers, np.array(trigger, np.int64))
    if "every" in trigger:
        return numbers[:: trigger["every"]]
    check_returns(rows)
    # The best first: highest return, or fewest steps. Ties keep their order.
    cost = -rows.return_ if trigger.get("by", "return") == "return" else rows.steps
    ranking = np.argsort(cost, kind="stable")
    if "best" in trigger:
        picked = ranking[: trigger["best"]]
    elif "worst" in trigger:
        picked = ranking[-trigger["worst"] :]
    else:
        start = max((len(ranking) - trigger["median"]) // 2, 0)
        picked = ranking[start : start + trigger["median"]]
    return np.sort(picked)


def check_returns(rows: Attempts) -> None:
    """Raise GoalreelError if a return is no number, so that episodes cannot be ranked."""
    if np.isnan(rows.return_).any():
        seed = rows.seed[np.isnan(rows.return_).argmax()]
        problem = f"The episode of seed {seed} has the return NaN, and cannot be ranked"
        raise GoalreelError(f"env: {problem}. Correct the environment's rewards.")


def select_steps(trigger: Sequence[int] | Mapping | None, total: int) -> np.ndarray:
    """Return the steps below `total` that a trigger selects, ascending, int64."""
    if trigger is None:
        return np.arange(0)
    if isinstance(trigger, Mapping):
        return np.arange(0, total, trigger["every"])
    steps = np.unique(np.array(trigger, np.int64))
    return steps[steps < total]
