"""Triggers: which episodes and which steps are filmed as clips of their own.

Episodes are all attempts of a run, by reach and attempt, and steps are counted over all of them, as
Gymnasium's save_video counts.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from goalreel.recorders.schedule import capped_cubic_video_schedule
from goalreel.simulation.trajectories import Attempts


def select_episodes(trigger: str | Sequence[int] | Mapping | None, rows: Attempts) -> np.ndarray:
    """Return the numbers of the episodes that a trigger selects, ascending, int64.

    trigger: "capped_cubic", "all", "failed", a list of episodes, {"every": k}, or k episodes by
    {"best": k}, {"worst": k}, {"median": k} with "by": "return" (the default) or "steps"; None
    selects nothing.
    """
    everything = np.arange(len(rows.steps))
    if trigger is None:
        return everything[:0]
    if trigger == "capped_cubic":
        return everything[[*map(capped_cubic_video_schedule, everything.tolist())]]
    if trigger == "all":
        return everything
    if trigger == "failed":
        return everything[~rows.reached]
    if not isinstance(trigger, Mapping):
        return np.intersect1d(everything, np.array(trigger, np.int64))
    if "every" in trigger:
        return everything[:: trigger["every"]]
    # The best first: the highest return, or the fewest steps; equal ones in their order.
    goodness = -rows.return_ if trigger.get("by", "return") == "return" else rows.steps
    ranking = np.argsort(goodness, kind="stable")
    if "best" in trigger:
        picked = ranking[: trigger["best"]]
    elif "worst" in trigger:
        picked = ranking[-trigger["worst"] :]
    else:
        start = max((len(ranking) - trigger["median"]) // 2, 0)
        picked = ranking[start : start + trigger["median"]]
    return np.sort(picked)


def select_steps(trigger: Sequence[int] | Mapping | None, total: int) -> np.ndarray:
    """Return the global steps, of `total`, that a trigger selects, ascending, int64."""
    if trigger is None:
        return np.arange(0)
    if isinstance(trigger, Mapping):
        return np.arange(0, total, trigger["every"])
    return np.intersect1d(np.arange(total), np.array(trigger, np.int64))
