"""How a film's time and memory grow with its reaches: whole runs, and each stage of them.

A run is `snakemake` from its start to its end, at the defaults, overlay included, with atlas and
coded atlas in the user's cache. A stage's seconds are those of its jobs, one after another, from
Snakemake's benchmark files; its CPU seconds and its peak, the most memory that the Python process
of one of its jobs held, from the jobs themselves (peaks/sitecustomize.py). ffmpeg's memory does not
count: it codes captions alone. Printed, and written to scale.csv and scale.md; what the runs make
is deleted.

    python -m benchmarks.film.scale                               1,000 and 10,000 reaches, a minute
    python -m benchmarks.film.scale 1000 10000 100000             some minutes, and 15 GB of disk
    python -m benchmarks.film.scale 1000 10000 --shard-size 500   smaller shards
"""

import argparse
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.sample import ENV, RESULTS, MismatchError
from benchmarks.table import available_cores, csv_text, describe_machine, markdown
from benchmarks.timed_run import measured_run

_BYTES = 150_000  # of disk for a reach, with some to spare
HEADER = ("reaches", "shard size", "step", "jobs", "s per 1,000 reaches", "CPU s per 1,000 reaches")
HEADER += ("peak, MiB", "film, MB")


@dataclass(frozen=True)
class Row:
    """A step of a run: its jobs, their seconds and CPU seconds, the largest one's bytes."""

    step: str
    jobs: int
    seconds: float
    cpu: float
    peak: int
    film: int | None = None

    def cells(self, reaches: int, shard_size: int) -> list[str]:
        """Return the cells below HEADER."""
        times = (f"{1000 * spent / reaches:.3f}" for spent in (self.seconds, self.cpu))
        film = "" if self.film is None else f"{self.film / 1e6:.1f}"
        size = f"{self.peak / 2**20:.0f}"
        return [str(reaches), str(shard_size), self.step, str(self.jobs), *times, size, film]


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table."""
    options = parse(argv)
    options.output.mkdir(parents=True, exist_ok=True)
    rows: list[list[str]] = []
    frames: list[int] = []
    with tempfile.TemporaryDirectory(prefix="goalreel-scale-", dir=options.folder) as name:
        folder = Path(name)
        film(folder / "first", folder / "cache", 1, 1, options.cores)  # atlas and coded atlas
        for reaches in options.reaches:
            place = folder / str(reaches)
            given = reaches, options.shard_size, options.cores
            found, shown = film(place, folder / "cache", *given)
            shutil.rmtree(place)
            rows += [row.cells(reaches, options.shard_size) for row in found]
            frames.append(shown)
            print(f"{reaches:,} reaches: {found[0].seconds:.1f} s", file=sys.stderr, flush=True)
    machine = describe_machine(options.cores)
    table = markdown(HEADER, rows, notes(options, frames, machine), words=3)
    print(table)
    text = csv_text(HEADER, rows, machine)
    Path(options.output, "scale.csv").write_text(text, encoding="utf-8")
    Path(options.output, "scale.md").write_text(table, encoding="utf-8")


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Return the options of a command line; end the program where the disk is too small."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = options.add_argument
    add("reaches", type=int, nargs="*", default=[1000, 10000], help="of each run (1000 10000)")
    add("--shard-size", type=int, default=1000, help="reaches of a shard (1000)")
    add("--cores", type=int, default=available_cores(), help="cores for the run (all)")
    add("--folder", type=Path, help="where the runs work (the system's temporary folder)")
    add("--output", type=Path, default=RESULTS, help="folder for the tables")
    arguments = options.parse_args(argv)
    if min(*arguments.reaches, arguments.shard_size, arguments.cores, 1) < 1:
        options.error("reaches, --shard-size and --cores must be positive")
    needed = _BYTES * max(arguments.reaches)
    free = shutil.disk_usage(arguments.folder or tempfile.gettempdir()).free
    if free < needed:
        options.error(f"{free / 1e9:.1f} GB are free, {needed / 1e9:.1f} GB needed; see --folder")
    return arguments


def film(
    folder: Path, cache: Path, reaches: int, shard_size: int, cores: int
) -> tuple[list[Row], int]:
    """Film in the new `folder`; return the run's row, those of its stages, and the film's frames.

    Raises RuntimeError, with what Snakemake said, if it fails.
    """
    from goalreel.mp4.reader import read_index
    from goalreel.report.timings import read_timings
    from goalreel.workflow.stages import FILM

    config = [f"reaches={reaches}", f"shard_size={shard_size}"]
    seconds, processes = measured_run(folder, cores, config, cache)
    path = folder / "results" / "film.mp4"
    frames = read_index(path).frames
    shards = -(-reaches // shard_size)
    timings = read_timings(folder / "results" / "benchmarks", FILM, shards, frames)[:-1]
    (snakemake,) = processes["snakemake"]  # whose children are all its jobs
    cpu = snakemake.own + snakemake.children
    largest = max(process.peak for started in processes.values() for process in started)
    jobs = sum(timing.jobs for timing in timings)
    rows = [Row("run", jobs, seconds, cpu, largest, path.stat().st_size)]
    for timing in timings:
        started = processes[timing.stage]
        if len(started) != timing.jobs:
            raise MismatchError(f"{timing.stage}: {timing.jobs} jobs, {len(started)} measured")
        spent = sum(process.own + process.children for process in started)
        peak = max(process.peak for process in started)
        rows.append(Row(timing.stage, timing.jobs, timing.seconds, spent, peak))
    own = cpu - sum(row.cpu for row in rows[1:])
    return [*rows, Row("Snakemake", 1, seconds, own, snakemake.peak)], frames


def notes(options: argparse.Namespace, frames: list[int], machine: str) -> list[str]:
    """Return what a reader of the table should know."""
    shown = ", ".join(f"{count:,}" for count in frames)
    return [
        f"One run each, {ENV} at goalreel's defaults, title cards and captions included; frames: "
        f"{shown}. Atlas and coded atlas are in the user's cache.",
        "run: from the start of snakemake to its end, on all cores, and the CPU time of all its "
        "processes. A stage's seconds are those of its jobs, one after another. Snakemake: the "
        "process that starts the jobs, without them.",
        "peak: the most memory that the Python process of a job held.",
        f"Machine: {machine}.",
    ]


if __name__ == "__main__":
    main()
