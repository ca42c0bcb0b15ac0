"""How large to make shards on a cluster: jobs, and what each takes, for a film's number of reaches.

One shard of each size is filmed here, with atlas and coded atlas in the user's cache, and the CPU
seconds and the peak memory of its three programs are told by themselves (peaks/sitecustomize.py).
What a cluster job costs beside them is measured as the CPU seconds of Snakemake that makes one file
of a shard of one reach. From both follows, by arithmetic alone, the table: jobs of so many shards
each as profiles/slurm groups them, and the seconds of a core that a job works. Printed, and written
to shards.csv and shards.md.

    python -m benchmarks.film.shards              shards of 250, 1,000, 5,000 and 10,000
"""

import argparse
import re
import tempfile
from pathlib import Path

from benchmarks.film.scale import Row, film
from benchmarks.sample import RESULTS, ROOT
from benchmarks.table import available_cores, csv_text, describe_machine, markdown

_STAGES = ("simulate", "render", "encode")
HEADER = ("reaches", "shard size", "shards", "jobs", "s per job", "of it start, s", "peak, MiB")


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table."""
    options = parse(argv)
    with tempfile.TemporaryDirectory(prefix="goalreel-shards-", dir=options.folder) as name:
        folder = Path(name)
        film(folder / "first", folder / "cache", 1, 1, options.cores)  # atlas and coded atlas
        rows, _ = film(folder / "one", folder / "cache", 1, 1, options.cores)
        start = next(row.cpu for row in rows if row.step == "Snakemake")
        shards = {}
        for size in options.sizes:
            rows, _ = film(folder / str(size), folder / "cache", size, size, options.cores)
            shards[size] = [row for row in rows if row.step in _STAGES]
    group = grouped()
    found = [
        cells(reaches, size, shards[size], group, start)
        for reaches in options.reaches
        for size in options.sizes
        if size * group <= reaches
    ]
    machine = describe_machine(available_cores())
    table = markdown(HEADER, found, notes(group, machine), words=0)
    print(table)
    output = RESULTS
    (output / "shards.csv").write_text(csv_text(HEADER, found, machine), encoding="utf-8")
    (output / "shards.md").write_text(table, encoding="utf-8")


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Return the options of a command line."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = options.add_argument
    add("sizes", type=int, nargs="*", default=[250, 1000, 5000, 10000], help="of the shards")
    add("--reaches", type=int, nargs="+", default=[10**5, 10**6, 10**7], help="of the films")
    add("--cores", type=int, default=1, help="cores to measure on (1)")
    add("--folder", type=Path, help="where the runs work (the system's temporary folder)")
    return options.parse_args(argv)


def grouped() -> int:
    """Return the shards of a job by profiles/slurm."""
    text = (ROOT / "profiles" / "slurm" / "config.yaml").read_text(encoding="utf-8")
    return int(re.search(r"^group-components:\n  shard: (\d+)$", text, re.M)[1])


def cells(reaches: int, size: int, rows: list[Row], group: int, start: float) -> list[str]:
    """Return the cells below HEADER for a film by shards of a size."""
    shards = -(-reaches // size)
    work = group * sum(row.cpu for row in rows)
    peak = max(row.peak for row in rows) / 2**20
    jobs = -(-shards // group)
    return [*map(str, (reaches, size, shards, jobs)), *_digits(start + work, start, peak)]


def _digits(*values: float) -> list[str]:
    return [f"{value:.0f}" for value in values]


def notes(group: int, machine: str) -> list[str]:
    """Return what a reader of the table should know."""
    return [
        f"jobs: of {group} shards each, as profiles/slurm groups them; one more joins the film.",
        "s per job: CPU seconds of a core, measured on one shard of each size and multiplied, and "
        "of Snakemake's start, without cluster plugins; queue and file system come on top.",
        "peak: of the neediest program, without the Snakemake beside it.",
        f"Machine: {machine}.",
    ]


if __name__ == "__main__":
    main()
