"""What planning costs: Snakemake's time and memory before its first job, by the number of shards.

A plan is `snakemake --dry-run` of a run of which nothing exists: the Snakefile is parsed, the graph
of jobs is built, and each job is printed, which here goes to no screen. A parse is what each job on
a cluster does before its own: the CPU time that the Snakefile takes, without Snakemake's start, and
that of a Snakefile of a single rule with the same configuration, which is Snakemake's own part. A
job is the process that an executor starts for one shard: it parses, and plans that job alone.
Printed, and written to dag.csv and dag.md; nothing is filmed.

    python -m benchmarks.film.dag                  1,000, 10,000 and 100,000 shards, three minutes
    python -m benchmarks.film.dag --plans 100000   a quarter of an hour more, and 6 GB of memory
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.sample import RESULTS, ROOT
from benchmarks.table import available_cores, csv_text, describe_machine, markdown

HEADER = ("shards", "step", "jobs", "seconds", "CPU s", "CPU ms per job", "peak, MiB")
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
    workflow._workflow  # which parses
    print("parsed", time.perf_counter() - wall, time.process_time() - start)
"""


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table."""
    options = parse(argv)
    options.output.mkdir(parents=True, exist_ok=True)
    rows = []
    with tempfile.TemporaryDirectory(prefix="goalreel-dag-") as name:
        folder = Path(name)
        one = folder / "Snakefile"
        one.write_text(_ONE_RULE.format(config=ROOT / "config.yaml"), encoding="utf-8")
        rows.append(parsed(folder, one, 1, "parse, one rule", options.runs))
        for shards in options.shards:
            rows.append(parsed(folder, ROOT / "Snakefile", shards, "parse", options.runs))
            target = ["--target-jobs", "simulate:shard=00000", "--allowed-rules", "simulate"]
            rows.append(planned(folder, shards, "job", 1, [*target, "--"]))
            if shards <= options.plans:
                rows.append(planned(folder, shards, "plan", 3 * shards + 4, ["--"]))
            print(" ".join(rows[-1]), file=sys.stderr, flush=True)
    machine = describe_machine(available_cores())
    table = markdown(HEADER, rows, notes(options, machine), words=2)
    print(table)
    text = csv_text(HEADER, rows, machine)
    Path(options.output, "dag.csv").write_text(text, encoding="utf-8")
    Path(options.output, "dag.md").write_text(table, encoding="utf-8")


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Return the options of a command line."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = options.add_argument
    add("shards", type=int, nargs="*", default=[1000, 10000, 100000], help="(1000 10000 100000)")
    add("--plans", type=int, default=10000, help="most shards of a plan of all jobs (10000)")
    add("--runs", type=int, default=5, help="parses, of which the median counts (5)")
    add("--output", type=Path, default=RESULTS, help="folder for the tables")
    arguments = options.parse_args(argv)
    if min(*arguments.shards, arguments.runs, 1) < 1:
        options.error("shards and --runs must be positive")
    return arguments


def parsed(folder: Path, snakefile: Path, shards: int, step: str, runs: int) -> list[str]:
    """Return the row of parsing a Snakefile."""
    found = []
    for _ in range(runs):
        said, _, _, peak = measured(folder, ["-c", _PARSE, str(snakefile), str(shards)])
        wall, cpu = said[said.index("parsed") :].split()[1:3]
        found.append((float(wall), float(cpu), peak))
    wall, cpu, peak = (median(column) for column in zip(*found, strict=True))
    return cells(shards, step, 0, wall, cpu, peak)


def planned(folder: Path, shards: int, step: str, jobs: int, options: list[str]) -> list[str]:
    """Return the row of a dry run."""
    command = ["-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--dry-run", "--cores"]
    command += ["1", "--quiet", "all", "--config", f"reaches={shards}", "shard_size=1"]
    _, wall, cpu, peak = measured(folder, [*command, *options])
    return cells(shards, step, jobs, wall, cpu, peak)


def cells(shards: int, step: str, jobs: int, wall: float, cpu: float, peak: float) -> list[str]:
    """Return the cells below HEADER."""
    each = f"{1000 * cpu / jobs:.2f}" if jobs > 1 else ""
    size = f"{peak / 2**20:.0f}"
    return [str(shards), step, str(jobs or ""), f"{wall:.2f}", f"{cpu:.2f}", each, size]


def measured(folder: Path, arguments: list[str]) -> tuple[str, float, float, int]:
    """Run Python; return what it said, its seconds, its CPU seconds and its peak in bytes.

    Raises RuntimeError, with what it said, if it fails.
    """
    environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache")}
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        process = subprocess.Popen(
            [sys.executable, *arguments], cwd=folder, env=environment, stdout=said, stderr=said
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read()
    if process.returncode:
        raise RuntimeError(f"{arguments} ended with status {process.returncode}:\n{text}")
    return text, time.perf_counter() - start, cpu_seconds(used), used.ru_maxrss * 1024


def cpu_seconds(used: resource.struct_rusage) -> float:
    """Return the CPU time of a process."""
    return used.ru_utime + used.ru_stime


def notes(options: argparse.Namespace, machine: str) -> list[str]:
    """Return what a reader of the table should know."""
    return [
        "Shards of one reach each, of which none exists; a plan has three jobs for each.",
        f"parse: the median of {options.runs}, without Snakemake's own start; what the Snakefile "
        f"costs is the difference to one rule. job, plan: from the start of the process to its "
        f"end, one run each. job: what an executor starts for one shard.",
        "peak: the most memory that the process held.",
        f"Machine: {machine}.",
    ]


if __name__ == "__main__":
    main()
