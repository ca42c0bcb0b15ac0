"""What the stages that take all shards hold in memory, by the number of reaches.

One shard of 1,000 reaches is made by the workflow and then taken as often as it needs: concat joins
its segment so many times, episodes writes its rows, plots and report read the table of them. Each
step runs in a process of its own, whose peak and seconds are measured. Printed, and written to
memory.csv and memory.md; what it makes is deleted.

    python -m benchmarks.film.memory                          1,000 and 10,000 reaches
    python -m benchmarks.film.memory 1000 10000 100000        minutes, and 12 GB of disk
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.sample import ENV, RESULTS, ROOT
from benchmarks.table import available_cores, csv_text, describe_machine, markdown

SHARD = 1000
HEADER = ("reaches", "step", "s per 1,000 reaches", "peak, MiB")
_START = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
results, times, out = Path(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
segment, shard = results / "segments/00000.mp4", results / "trajectories/00000.npz"
"""
# `start` alone tells what Python and the imports take.
STEPS = {
    "concat": """
from goalreel.films.concatenate import _chapters, join
from goalreel.simulation.trajectories import read_summary
chapters = _chapters((read_summary(shard) for _ in range(times)), 15, "reach")
class Often(list):
    __iter__ = lambda self: (segment for _ in range(times))
    __len__ = lambda self: times
    __getitem__ = lambda self, number: segment
join(Often(), out / "film.mp4", 30, "a film", "{}", chapters)
""",
    "episodes": """
from goalreel.films.tables import write_tables
write_tables((shard for _ in range(times)), out / "e.csv", out / "a.csv", "MountainCar-v0", 30, 15)
""",
    "plots: reading": """
from goalreel.report.plot_data import read_returns, read_steps
read_steps(out / "e.csv", "reach")
read_returns(out / "e.csv")
""",
    "report: rows": """
from goalreel.report.reach_rate import pieces
from goalreel.report.page_rows import columns, write_rows
write_rows(out / "data.js", pieces(out / "e.csv", columns("reach")), 30, "reach")
""",
}


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = options.add_argument
    add("reaches", type=int, nargs="*", default=[1000, 10000], help="thousands (1000 10000)")
    add("--folder", type=Path, help="where to work (the system's temporary folder)")
    add("--output", type=Path, default=RESULTS, help="folder for the tables")
    arguments = options.parse_args(argv)
    if any(reaches < SHARD or reaches % SHARD for reaches in arguments.reaches):
        options.error(f"reaches must be multiples of {SHARD}")
    arguments.output.mkdir(parents=True, exist_ok=True)
    rows = []
    with tempfile.TemporaryDirectory(prefix="goalreel-memory-", dir=arguments.folder) as name:
        folder = Path(name)
        results = made(folder)
        for reaches in arguments.reaches:
            for step, program in STEPS.items():
                seconds, peak = measured(folder, results, reaches // SHARD, program)
                each, size = f"{1000 * seconds / reaches:.3f}", f"{peak / 2**20:.0f}"
                rows.append([str(reaches), step, each, size])
                print(" ".join(rows[-1]), file=sys.stderr, flush=True)
    machine = describe_machine(available_cores())
    notes = [
        f"One shard of {SHARD:,} reaches of {ENV} at goalreel's defaults, taken often; "
        f"one run each. concat is the joining alone, without the checks of each shard.",
        f"Machine: {machine}.",
    ]
    table = markdown(HEADER, rows, notes, words=2)
    print(table)
    text = csv_text(HEADER, rows, machine)
    Path(arguments.output, "memory.csv").write_text(text, encoding="utf-8")
    Path(arguments.output, "memory.md").write_text(table, encoding="utf-8")


def made(folder: Path) -> Path:
    """Make a shard in `folder` by the workflow; return its results."""
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "-q"]
    command += ["all", "--directory", str(folder), "-j", str(available_cores()), "--config"]
    command += [f"reaches={SHARD}", f"shard_size={SHARD}"]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return folder / "results"


def measured(folder: Path, results: Path, times: int, program: str) -> tuple[float, int]:
    """Run a step; return its seconds and its peak in bytes. Raises RuntimeError if it fails."""
    command = [sys.executable, "-c", _START + program, str(ROOT / "scripts"), str(results)]
    start = time.perf_counter()
    process = subprocess.Popen([*command, str(times), str(folder)])
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"a step ended with status {process.returncode}")
    return time.perf_counter() - start, used.ru_maxrss * 1024


if __name__ == "__main__":
    main()
