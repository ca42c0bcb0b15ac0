"""Timings: what the stages of the film took, from the files of Snakemake's `benchmark`."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from goalreel.errors import GoalreelError
from goalreel.film.shards import shard_name

STAGES = ("simulate", "atlas", "coded_atlas", "render", "encode", "concat", "episodes")


@dataclass(frozen=True)
class Timing:
    """What a stage took: its jobs, their seconds in sum, its share of all stages' seconds.

    rate: the film's frames per second of these seconds, None where they are too few to tell
    """

    stage: str
    jobs: int
    seconds: float
    share: float
    rate: float | None


def read_timings(benchmarks: Path, shards: int, frames: int) -> list[Timing]:
    """Return the timings of the film's stages, and of all of them together as the last.

    benchmarks: folder of STAGE.tsv or STAGE/SHARD.tsv; one of a longer film's shards does not
    count, and a stage without any is left out. frames: the film's. Raises GoalreelError if a file
    is no benchmark.
    """
    seconds = {}
    for stage in STAGES:
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
        return float(pd.read_csv(path, sep="\t")["s"].sum())
    except (ValueError, KeyError) as error:
        raise GoalreelError(f"{path}: not a benchmark ({error}); delete it") from None
