"""Read how long the stages of a run took, from Snakemake's benchmark files."""

from collections.abc import Iterable
from pathlib import Path

from goalreel.files.damage import reporting_damage
from goalreel.films.shards import shard_name


def read_timings(
    benchmarks: Path, stages: Iterable[str], shards: int
) -> dict[str, tuple[int, float]]:
    """Return the number of jobs of each stage, and their total time in seconds.

    The files are STAGE.tsv or STAGE/SHARD.tsv. Stages without files are skipped, and so are shards
    beyond the film's. Raises GoalreelError if a file is not a benchmark.
    """
    timings = {}
    for stage in stages:
        names = (f"{shard_name(shard)}.tsv" for shard in range(shards))
        files = [benchmarks / f"{stage}.tsv", *(benchmarks / stage / name for name in names)]
        seconds = []
        for path in filter(Path.is_file, files):
            with reporting_damage(path, "it is not a benchmark"):
                _, *rows = path.read_text(encoding="utf-8").splitlines()
                seconds.append(sum(float(row.split("\t")[0]) for row in rows))
        if seconds:
            timings[stage] = len(seconds), sum(seconds)
    return timings
