"""Time and memory of long films. One command for each table.

    runs     whole runs and each of their stages, by the number of reaches (scale.csv, scale.md)
    shards   the work of a cluster job, by the size of shards: one shard of each size is filmed on
             one core, the rest is arithmetic (shards.csv, shards.md)
    memory   the stages that read all shards: one shard of 1,000 reaches is read as often as needed
             (memory.csv, memory.md)
    plans    Snakemake before its first job: a parse, a cluster job of one shard, and a dry run of
             all jobs (dag.csv, dag.md)

CPU seconds and memory are those of the Python processes. ffmpeg codes only captions.

    python -m benchmarks.film.scale runs                          1,000 and 10,000 reaches
    python -m benchmarks.film.scale runs --counts 100000          minutes, 15 GB of disk
    python -m benchmarks.film.scale shards                        250 to 10,000 reaches a shard
    python -m benchmarks.film.scale memory --counts 1000 100000   minutes, 12 GB of disk
    python -m benchmarks.film.scale plans                         1,000 and 10,000 shards
    python -m benchmarks.film.scale plans --counts 100000         15 minutes, 6 GB of memory
"""

import re
import shutil
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.harness import (
    ENV,
    ROOT,
    MismatchError,
    available_cores,
    medians,
    parser,
    run_python,
    run_workflow,
    write_table,
)

_MIB = 2**20
_STAGES = ("simulate", "render", "encode")
_ONE_RULE = 'configfile: "{config}"\nrule one:\n    output: "one"\n    shell: "touch {{output}}"\n'
_PARSE = """
import sys, time
from pathlib import Path
from snakemake.api import SnakemakeApi
from snakemake.settings.types import ConfigSettings, OutputSettings, ResourceSettings
config = {"reaches": int(sys.argv[2]), "shard_size": 1}
with SnakemakeApi(OutputSettings()) as api:
    workflow = api.workflow(
        resource_settings=ResourceSettings(cores=1),
        config_settings=ConfigSettings(config=config),
        snakefile=Path(sys.argv[1]),
    )
    wall, start = time.perf_counter(), time.process_time()
    workflow._workflow  # parses the Snakefile
    print("parsed", time.perf_counter() - wall, time.process_time() - start)
"""
_START = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
results, times, out = Path(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
segment, shard = results / "segments/00000.mp4", results / "trajectories/00000.npz"
"""
READERS = {
    "concat": """
from goalreel.films.concatenate import _chapters, join
from goalreel.simulation.trajectories import read_summary
chapters = list(_chapters(read_summary(shard), 15, "reach"))
join([(segment, chapters)] * times, out / "film.mp4", 30, "a film", "{}")
""",
    "episodes": """
from goalreel.films.tables import write_tables
write_tables((shard for _ in range(times)), out / "e.csv", out / "a.csv", "MountainCar-v0", 30, 15)
""",
    "plots: reading": """
from goalreel.report.plots import read_episodes
read_episodes(out / "e.csv", "reach")
""",
    "report: rows": """
from goalreel.report.episode_table import read_table
from goalreel.report.page_rows import columns, write_rows
write_rows(out / "data.js", read_table(out / "e.csv", columns("reach")), 30, "reach")
""",
}


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write a table."""
    add = (options := parser(__doc__, runs=5)).add_argument
    add("table", choices=TABLES)
    add("--counts", type=int, nargs="+", help="numbers of reaches or shards")
    add("--cores", type=int, default=available_cores(), help="cores of `runs` (all)")
    add("--folder", type=Path, help="working folder of the runs (a temporary one)")
    chosen = options.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="goalreel-scale-", dir=chosen.folder) as name:
        TABLES[chosen.table](Path(name), chosen)


@dataclass(frozen=True)
class Row:
    """A step of a run: its jobs, their seconds and CPU seconds, and the largest job's bytes."""

    step: str
    jobs: int
    seconds: float
    cpu: float
    peak: int
    film: int | None = None


def film(folder: Path, reaches: int, shard_size: int, cores: int) -> tuple[list[Row], int]:
    """Film in a new folder, next to a user's cache, and delete the folder.

    Return a row for the run, for each stage and for Snakemake, and the film's frames.
    """
    from goalreel.mp4.reader import read_index
    from goalreel.report.page import read_timings
    from goalreel.workflow.stages import FILM

    config = [f"reaches={reaches}", f"shard_size={shard_size}"]
    seconds, processes = run_workflow(folder, cores, config, folder.parent / "cache")
    path = folder / "results" / "film.mp4"
    frames = read_index(path).frames
    shards = -(-reaches // shard_size)
    timings = read_timings(folder / "results" / "benchmarks", FILM, shards)
    (snakemake,) = processes["snakemake"]  # all jobs are its children
    cpu = snakemake.own + snakemake.children
    largest = max(process.peak for started in processes.values() for process in started)
    jobs = sum(jobs for jobs, _ in timings.values())
    rows = [Row("run", jobs, seconds, cpu, largest, path.stat().st_size)]
    for stage, (jobs, took) in timings.items():
        started = processes[stage]
        if len(started) != jobs:
            raise MismatchError(f"{stage}: {jobs} jobs, {len(started)} measured")
        spent = sum(process.own + process.children for process in started)
        peak = max(process.peak for process in started)
        rows.append(Row(stage, jobs, took, spent, peak))
    own = cpu - sum(row.cpu for row in rows[1:])
    shutil.rmtree(folder)
    return [*rows, Row("Snakemake", 1, seconds, own, snakemake.peak)], frames


def runs(folder: Path, options) -> None:
    """Measure whole runs and their stages."""
    film(folder / "first", 1, 1, options.cores)  # atlas and coded atlas
    rows, shown = [], []
    for reaches in options.counts or (1000, 10000):
        found, frames = film(folder / str(reaches), reaches, 1000, options.cores)
        shown.append(f"{frames:,}")
        for row in found:
            times = (f"{1000 * spent / reaches:.3f}" for spent in (row.seconds, row.cpu))
            size = "" if row.film is None else f"{row.film / 1e6:.1f}"
            cells = str(reaches), "1000", row.step, str(row.jobs), *times
            rows.append([*cells, f"{row.peak / _MIB:.0f}", size])
    header = ("reaches", "shard size", "step", "jobs", "s per 1,000 reaches")
    header += ("CPU s per 1,000 reaches", "peak, MiB", "film, MB")
    notes = [
        f"One run each, {ENV} at goalreel's defaults, with title cards and captions. Frames: "
        f"{', '.join(shown)}. Atlas and coded atlas are in the user's cache.",
        "run: from the start of snakemake to its end, on all cores, and the CPU time of all its "
        "processes. A stage's seconds are those of its jobs, one after another. Snakemake: the "
        "process that starts the jobs, without them.",
        "peak: the most memory that the Python process of a job held.",
    ]
    write_table(options.output / "scale", header, rows, notes, 3)


def shards(folder: Path, options) -> None:
    """Measure a shard of each size, and derive the jobs of long films."""
    film(folder / "first", 1, 1, 1)  # atlas and coded atlas
    start = film(folder / "one", 1, 1, 1)[0][-1].cpu
    text = (ROOT / "profiles" / "slurm" / "config.yaml").read_text(encoding="utf-8")
    group = int(re.search(r"^group-components:\n  shard: (\d+)$", text, re.M)[1])
    rows = []
    found = {
        size: [r for r in film(folder / str(size), size, size, 1)[0] if r.step in _STAGES]
        for size in options.counts or (250, 1000, 5000, 10000)
    }
    for reaches in (10**5, 10**6, 10**7):
        for size in (size for size in found if size * group <= reaches):
            count = -(-reaches // size)
            work = start + group * sum(row.cpu for row in found[size])
            counts = map(str, (reaches, size, count, -(-count // group)))
            peak = max(row.peak for row in found[size]) / _MIB
            rows.append([*counts, f"{work:.0f}", f"{start:.0f}", f"{peak:.0f}"])
    header = ("reaches", "shard size", "shards", "jobs", "s per job", "of it start, s", "peak, MiB")
    notes = [
        f"jobs: of {group} shards each, as profiles/slurm groups them. Another one joins the film.",
        "s per job: CPU seconds of a core, measured on one shard of each size and multiplied, and "
        "of Snakemake's start, without cluster plugins, queue and file system.",
        "peak: of the largest program, without the Snakemake process that started it.",
    ]
    write_table(options.output / "shards", header, rows, notes, 0)


def memory(folder: Path, options) -> None:
    """Measure the stages that read all shards."""
    config = ["reaches=1000", "shard_size=1000"]
    run_workflow(folder, available_cores(), config, folder / "cache", ["all"])
    rows = []
    for reaches in options.counts or (1000, 10000):
        for step, program in READERS.items():
            given = ROOT / "scripts", folder / "results", reaches // 1000, folder
            used = run_python(["-c", _START + program, *given], folder, folder / "cache")
            ((process,),) = used[1].values()
            cells = f"{1000 * used[0] / reaches:.3f}", f"{process.peak / _MIB:.0f}"
            rows.append([str(reaches), step, *cells])
            print(rows[-1], file=sys.stderr)
    notes = [
        f"One shard of 1,000 reaches of {ENV} at goalreel's defaults, read often, in one run each. "
        "concat is the joining only, without the checks of each shard."
    ]
    header = ("reaches", "step", "s per 1,000 reaches", "peak, MiB")
    write_table(options.output / "memory", header, rows, notes, 2)


def plans(folder: Path, options) -> None:
    """Measure parses, cluster jobs and dry runs."""
    one = folder / "Snakefile"
    one.write_text(_ONE_RULE.format(config=ROOT / "config.yaml"), encoding="utf-8")
    rows = [parsed(folder, one, 1, "parse, one rule", options.runs)]
    for count in options.counts or (1000, 10000):
        rows.append(parsed(folder, ROOT / "Snakefile", count, "parse", options.runs))
        target = ["--target-jobs", "simulate:shard=00000", "--allowed-rules", "simulate"]
        rows.append(planned(folder, count, "job", 1, [*target, "--"]))
        rows.append(planned(folder, count, "plan", 3 * count + 4, ["--"]))
        print(rows[-3:], file=sys.stderr)
    notes = [
        "Shards of one reach each, of which none exists. A plan has three jobs for each.",
        f"parse: {medians(options.runs)}, without Snakemake's own start. The Snakefile costs the "
        "difference to one rule. job, plan: from the start of the process to its end, one run "
        "each. job: the process that an executor starts for one shard.",
        "peak: the most memory that the process held.",
    ]
    header = ("shards", "step", "jobs", "seconds", "CPU s", "CPU ms per job", "peak, MiB")
    write_table(options.output / "dag", header, rows, notes, 2)


def parsed(folder: Path, snakefile: Path, shards: int, step: str, runs: int) -> list[str]:
    """Return the row of parsing a Snakefile."""
    found = []
    for _ in range(runs):
        given = ["-c", _PARSE, snakefile, shards], folder, folder / "cache"
        _, processes, text = run_python(*given)
        wall, cpu = text[text.index("parsed") :].split()[1:3]
        found.append((float(wall), float(cpu), processes["-c"][0].peak))
    return plan_cells(shards, step, 0, *map(median, zip(*found, strict=True)))


def planned(folder: Path, shards: int, step: str, jobs: int, options: Iterable[str]) -> list[str]:
    """Return the row of a dry run."""
    command = ["-m", "snakemake", "--snakefile", ROOT / "Snakefile", "--dry-run", "--cores", "1"]
    command += ["--quiet", "all", "--config", f"reaches={shards}", "shard_size=1", *options]
    seconds, processes, _ = run_python(command, folder, folder / "cache")
    (process,) = processes["snakemake"]
    return plan_cells(shards, step, jobs, seconds, process.own, process.peak)


def plan_cells(
    shards: int, step: str, jobs: int, wall: float, cpu: float, peak: float
) -> list[str]:
    """Return the cells of a row of `plans`."""
    each = f"{1000 * cpu / jobs:.2f}" if jobs > 1 else ""
    figures = f"{wall:.2f}", f"{cpu:.2f}", each, f"{peak / _MIB:.0f}"
    return [str(shards), step, str(jobs or ""), *figures]


TABLES = {"runs": runs, "shards": shards, "memory": memory, "plans": plans}


if __name__ == "__main__":
    main()
