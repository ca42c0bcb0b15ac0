"""Compare runs: the differences of each pair of runs, and a table of their seeds."""

import itertools
from bisect import bisect
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from goalreel.errors import GoalreelError, pluralize
from goalreel.policies.parameters import policy_label
from goalreel.provenance.embedded_specs import read_spec
from goalreel.provenance.spec import shard_paths
from goalreel.rendering.captions import outcome
from goalreel.report.statistics import paired_difference
from goalreel.simulation.trajectories import Steps, first_difference, read_trajectories
from goalreel.views.filmed_episodes import FilmedEpisodes, read_filmed

_PAIR = ["a", "b", "seeds", "unpaired", "mean", "low", "high", "wins", "ties", "losses"]
_PAIR += ["detectable", "sentence"]
_MOST_LINES = 5  # pairs that the summary names
# In the film: sides, seeds, seeds if all returns are equal, and frames (five minutes at 60 per
# second).
MOST_SIDES, _MOST_SEEDS, _EQUAL_SEEDS, _MOST_FRAMES = 9, 12, 4, 18_000


@dataclass(frozen=True)
class ComparedRun:
    """One of the runs to compare."""

    name: str
    policy: str
    fps: int
    filmed: FilmedEpisodes
    trajectories: Sequence[Path]  # of all shards
    table: pd.DataFrame  # the first episode of each seed, by seed in film order, and its row

    def steps(self, row: int) -> Steps:
        """Return the steps of the episode in a row."""
        starts = self.filmed.starts
        shard = bisect(starts, row) - 1
        return _read(self.trajectories[shard]).episode(row - starts[shard])


_read = lru_cache(2 * MOST_SIDES)(read_trajectories)


def read_run(folder: str, name: str) -> ComparedRun:
    """Read the run in a results folder. Raises GoalreelError if it cannot be used."""
    results = Path(folder)
    tables = read_spec(results / "tables.json")
    shards, unit = tables.shard["shards"], tables.config["unit"]
    firsts = (results / name / "00000.npz" for name in ("trajectories", "frames"))
    trajectories, frames = (shard_paths(first, shards) for first in firsts)
    filmed = read_filmed(trajectories, frames, tables.config["env"], unit)
    rows, played = filmed.rows, filmed.summaries[0].spec
    if "selection" in played.input_digests:
        raise GoalreelError(
            f"{folder}: Has only the episodes that film.select chose. Film all of them to compare."
        )
    if (rows.seed < 0).any():
        fix = "Add the column seed to the recording."
        raise GoalreelError(f"{folder}: Has episodes without a seed, which cannot be paired. {fix}")
    columns = {"seed": rows.seed.astype(np.uint64), "return": rows.return_, "steps": rows.steps}
    table = pd.DataFrame(columns | {"row": range(len(filmed))})
    table["outcome"] = [outcome(rows.row(row), unit) for row in table["row"]]
    table = table.drop_duplicates("seed").set_index("seed")
    policy, fps = policy_label(played.config["policy"]), tables.config["film.fps"]
    return ComparedRun(name, policy, fps, filmed, trajectories, table)


def compare_pairs(runs: Sequence[ComparedRun]) -> tuple[pd.DataFrame, list[pd.Series]]:
    """Return a row for each pair of runs, and for each its differences b - a of returns, by seed.

    Raises GoalreelError if no two runs have a seed in common.
    """
    rows, differences = [], []
    for a, b in itertools.combinations(runs, 2):
        both = a.table.join(b.table, how="inner", lsuffix="_a", rsuffix="_b")
        returns = both["return_a"], both["return_b"]
        differences.append((returns[1] - returns[0]).round(9))  # drops the errors of sums
        row = {"a": a.name, "b": b.name, "seeds": len(both), "sentence": "no common seeds"}
        row["unpaired"] = len(a.table) + len(b.table) - 2 * len(both)
        if len(both):
            if not (finite := np.isfinite(returns).all(axis=0)).all():
                problem = f"The return of seed {both.index[~finite][0]} is not finite"
                raise GoalreelError(f"compare: {problem}. Correct the environment's rewards.")
            found = paired_difference(*returns)
            row |= vars(found) | vars(found.mean) | {"mean": found.mean.value}
            row["sentence"] = found.sentence(a.name, b.name)
        rows.append(row)
    if not any(map(len, differences)):
        seeds = (f"{r.name}: {', '.join(map(str, sorted(r.table.index)[:3]))}, ..." for r in runs)
        raise GoalreelError(
            "seeds: The runs have none in common. Film all with the same seed or "
            "seeds, and all with reaches or all with episodes.\n  " + "\n  ".join(seeds)
        )
    counts = dict.fromkeys(("wins", "ties", "losses"), "Int64")
    # Rounding drops the last digits, in which processors differ.
    return pd.DataFrame(rows, columns=_PAIR).astype(counts).round(6), differences


def table_of_seeds(runs: Sequence[ComparedRun]) -> pd.DataFrame:
    """Return a row for each seed that at least two runs played, in the first run's film order.

    For each run NAME it has the columns return_NAME, steps_NAME and outcome_NAME, and after the
    first run differs_NAME: the first step at which an episode differs from that of the first run.
    """
    counts, first = Counter(seed for run in runs for seed in run.table.index), runs[0]
    shared = [seed for seed in counts if counts[seed] > 1]
    table = pd.DataFrame(index=pd.Index(shared, np.uint64, name="seed"))
    for run in runs:
        own = run.table.reindex(table.index)
        table[f"return_{run.name}"] = own["return"]
        table[f"steps_{run.name}"] = own["steps"].astype("Int64")
        table[f"outcome_{run.name}"] = own["outcome"]
        if run is not first:
            rows = first.table[["row"]].join(run.table["row"], how="inner", lsuffix="_first")
            found = [first_difference(first.steps(a), run.steps(b)) for a, b in rows.to_numpy()]
            steps = pd.array([difference and difference[0] for difference in found], "Int64")
            table[f"differs_{run.name}"] = pd.Series(steps, rows.index)
    return table


def choose_seeds(
    pairs: pd.DataFrame, differences: Sequence[pd.Series], table: pd.DataFrame, names: Sequence[str]
) -> dict[int, str]:
    """Return the seeds to film with the reason for each: the largest differences each way.

    If all returns are equal, they are a few seeds, first those whose episodes differ. `pairs` and
    `differences` are from `compare_pairs`, `table` from `table_of_seeds`.
    """
    queues = []
    for a, b, by_seed in zip(pairs["a"], pairs["b"], differences, strict=True):
        ordered = by_seed.sort_values(kind="stable") if {a, b} <= {*names} else by_seed[:0]
        for way, own in (("more", ordered[ordered > 0][::-1]), ("less", ordered[ordered < 0])):
            reason = f"{b} returns {{:,.6g}} {way} than {a}".format
            queues.append([(seed, reason(abs(value))) for seed, value in own.items()])
    ranked = list(filter(None, itertools.chain.from_iterable(itertools.zip_longest(*queues))))
    reasons = dict(reversed(ranked))  # the first of each seed
    differs = table.filter(regex="^differs_").notna().any(axis=1)
    equal = differs.sort_values(ascending=False, kind="stable").index[:_EQUAL_SEEDS]
    seeds = list(dict.fromkeys(seed for seed, _ in ranked))[:_MOST_SEEDS] or equal.tolist()
    frames = table.loc[seeds].filter(regex="^steps_").max(axis=1).cumsum()
    seeds = seeds[: max(int((frames <= _MOST_FRAMES).sum()), 1)]
    return {seed: reasons.get(seed, "equal returns") for seed in seeds}


def summary(runs: Sequence[ComparedRun], pairs: pd.DataFrame, table: pd.DataFrame) -> str:
    """Return the number of filmed seeds, and a line for each of the pairs that differ most."""
    lines = [f"{table['start_s'].count()} of {pluralize(len(table), 'seed')}"]
    if len(runs) > MOST_SIDES:
        lines[0] += f", the first {MOST_SIDES} of {len(runs)} runs"
    is_shown, size = (pairs["low"] > 0) | (pairs["high"] < 0), pairs["mean"].abs()
    ranked = pairs.iloc[np.lexsort((-size, ~is_shown))]
    for pair in ranked[:_MOST_LINES].itertuples():
        line = f"  {pair.a}, {pair.b}: {pair.sentence}"
        if pair.seeds:
            line += f" · {pair.b} wins {pair.wins:,}, ties {pair.ties:,}, loses {pair.losses:,}"
        if pair.unpaired:
            line += f" · {pluralize(pair.unpaired, 'unpaired seed')} left out"
        lines.append(line)
    if more := len(pairs[_MOST_LINES:]):
        lines.append(f"  and {pluralize(more, 'other pair')} in pairs.csv")
    return "\n".join(lines)
