"""How far a run is and how long it still takes, estimated from the jobs that have finished.

A job counts with the time that jobs of its rule took on average; of a rule of which none has
finished yet, with a guess, in proportion to what the others took. How it is shown stands in
progress_bar.
"""

from collections.abc import Mapping
from dataclasses import dataclass

# Seconds of a job with a shard of 250 reaches, other work beside it: only their ratios count, and
# only until the first job of a rule has finished.
_GUESSES = {
    **{"simulate": 0.4, "atlas": 2.0, "render": 0.6, "coded_atlas": 4.0, "encode": 0.8},
    **{"concat": 0.3, "episodes": 1.0, "clips": 4.0, "grid": 8.0, "swarm": 5.0, "phase": 5.0},
    **{"stills": 2.0, "plots": 3.0, "report": 2.0, "train": 4.0, "learning": 6.0, "verify": 3.0},
}
_FRAME_RULES = ("encode", "render", "simulate")  # whose logs tell frames; the first that is planned


@dataclass(frozen=True)
class Estimate:
    """share: of the work, 0 to 1; rate: the film's frames per second or None; left: s or None."""

    share: float
    rate: float | None
    left: float | None


def estimate(
    planned: Mapping[str, int],
    done: Mapping[str, int],
    seconds: Mapping[str, float],
    frames: Mapping[str, float],
    elapsed: float,
) -> Estimate:
    """Return how far a run is.

    planned, done: jobs of each rule; seconds: what the finished ones took in sum; frames: of a
    shard on average, by the rule that told them; elapsed: seconds since the run's first job.
    """
    guessed = sum(_GUESSES.get(rule, 0.0) * jobs for rule, jobs in done.items())
    scale = sum(seconds.values()) / guessed if guessed else 1.0
    cost = {
        rule: seconds[rule] / done[rule] if done.get(rule) else _GUESSES.get(rule, 0.0) * scale
        for rule in planned
    }
    total = sum(cost[rule] * jobs for rule, jobs in planned.items())
    finished = sum(cost[rule] * min(done.get(rule, 0), jobs) for rule, jobs in planned.items())
    if not finished or not elapsed:
        return Estimate(0.0, None, None)
    share = finished / total
    left = elapsed * (total - finished) / finished
    shards = next((planned[rule] for rule in _FRAME_RULES if planned.get(rule)), 0)
    of_a_shard = next((frames[rule] for rule in _FRAME_RULES if rule in frames), None)
    if not shards or of_a_shard is None:
        return Estimate(share, None, left)
    return Estimate(share, share * shards * of_a_shard / elapsed, left)


def told(found: Estimate, since: float) -> str:
    """Return the estimate in words; since: seconds that have passed since it was made."""
    if found.left is None:
        return ""
    rest = max(round(found.left - since), 0)
    left = f"{rest // 3600}:{rest // 60 % 60:02d}:{rest % 60:02d} left"
    return left if found.rate is None else f"{found.rate:,.0f} frames/s, {left}"
