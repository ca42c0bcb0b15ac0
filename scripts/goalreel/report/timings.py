"""Timings: what the stages of a run took, from the files of Snakemake's `benchmark`."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from goalreel.errors import GoalreelError
from goalreel.films.shards import shard_name


@dataclass(frozen=True)
class Timing:
    """What a stage took."""

    stage: str
    jobs: int
    seconds: float  # of all its jobs together
    share: float  # of all stages' seconds
    rate: float | None  # the film's frames per second of these, None where there is no second


def read_timings(benchmarks: Path, stages: Iterable[str], shards: int, frames: int) -> list[Timing]:
    """Return the timings of stages, and of all of them together as the last.

    Args:
        benchmarks: the folder of STAGE.tsv or STAGE/SHARD.tsv; a stage without any is left out, as
            are those of a longer film's shards.
        stages: in the order to be shown.
        shards: the film's number of shards.
        frames: the film's number of frames.

    Raises:
        GoalreelError: a file is not a benchmark.
    """
    seconds = {}
    for stage in stages:
        names = (f"{shard_name(shard)}.tsv" for shard in range(shards))
        files = [benchmarks / f"{stage}.tsv", *(benchmarks / stage / name for name in names)]
        spent = [_seconds(path) for path in files if path.is_file()]
        if spent:
            seconds[stage] = (len(spent), sum(spent))
    # None at all where the stages ran elsewhere and left their benchmarks on object storage.
    jobs, total = sum(jobs for jobs, _ in seconds.values()), sum(s for _, s in seconds.values())
    rows = [*((stage, *spent) for stage, spent in seconds.items()), ("all", jobs, total)]
    return [
        Timing(stage, jobs, spent, spent / total if total else 0, frames / spent if spent else None)
        for stage, jobs, spent in rows
    ]


def _seconds(path: Path) -> float:
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            return sum(float(row["s"]) for row in csv.DictReader(stream, delimiter="\t"))
    except (ValueError, KeyError, TypeError, csv.Error) as error:
        raise GoalreelError(f"{path}: not a benchmark ({error}); delete it") from None
