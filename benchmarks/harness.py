"""Shared parts of all benchmarks: contenders in turns, clocks, and tables that name the machine.

Benchmarks of films need envs/locks/bench.txt. Those of training need envs/locks/run.txt and the
group train-test of pyproject.toml. Each prints its table and writes it to benchmarks/results, or to
`--output`, as CSV and Markdown.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from csv import writer
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
sys.path.insert(0, str(ROOT / "scripts"))
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # render without a screen

ENV = "MountainCar-v0"
FILM_PACKAGES = (
    *("snakemake", "numpy", "gymnasium", "pygame-ce", "moviepy", "envpool", "imageio-ffmpeg"),
)
TRAINING_PACKAGES = ("torch", "stable-baselines3", "ale-py", "gymnasium", "numpy")
_SIMD = ("amx_bf16", "avx512_bf16", "avx512f", "avx2", "asimd")  # flags, the strongest first


class MismatchError(Exception):
    """A contender played or showed something different from goalreel."""


# Command lines and turns


def parser(description: str, runs: int = 3) -> argparse.ArgumentParser:
    """Return a parser with the options of all benchmarks."""
    options = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--runs", type=int, default=runs, help=f"rounds of all rows ({runs})")
    options.add_argument("--output", type=_absolute, default=RESULTS, help="folder for the tables")
    return options


def _absolute(text: str) -> Path:
    return Path(text).absolute()


def take_turns(contenders: Mapping, runs: int, rotate: bool = True) -> dict:
    """Return the results of each contender, a function without arguments, one per run.

    Contenders take turns, so that a busy machine slows all of them alike. With `rotate`, each run
    begins with another one.
    """
    names, found = list(contenders), {name: [] for name in contenders}
    for run in range(runs):
        first = run % len(names) if rotate else 0
        for name in (*names[first:], *names[:first]):
            found[name].append(contenders[name]())
            print(f"run {run + 1} of {runs}: {name}: {found[name][-1]}", file=sys.stderr)
    return found


def row_process(module: str, name: str, python: str = sys.executable, *more: str):
    """Return the JSON that `python -m MODULE --row NAME` printed last. Raises RuntimeError."""
    command = [python, "-m", module, "--row", name, *more]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if answer.returncode:
        raise RuntimeError(f"{name} ended with status {answer.returncode}:\n{answer.stderr}")
    return json.loads(answer.stdout.splitlines()[-1])


def rate(work: Callable[[], int], seconds: float, clock: Callable = time.process_time) -> float:
    """Repeat `work` for some seconds, and return the units per second that it counted."""
    units, start = 0, clock()
    while (spent := clock() - start) < seconds:
        units += work()
    return units / spent


# Clocks


@dataclass(frozen=True)
class Process:
    """The figures of a Python process."""

    peak: int  # bytes of memory
    own: float  # CPU seconds
    children: float  # CPU seconds of the processes that it waited for


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of the children that it waited for."""
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def cpu_of(work: Callable) -> tuple[object, float]:
    """Return the result of `work` and its CPU seconds, including its children's."""
    before = cpu_seconds()
    result = work()
    return result, cpu_seconds() - before


def peak_bytes(key: str = "VmHWM") -> int:
    """Return the peak memory of this process in bytes."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.search(rf"{key}:\s*(\d+) kB", status)[1]) * 1024


def run_python(
    arguments: Sequence, folder: Path, cache: Path
) -> tuple[float, dict[str, list[Process]], str]:
    """Run Python in a folder, with a user's cache. Raises RuntimeError.

    Return the seconds, the processes of each program, and the output.
    """
    with tempfile.TemporaryDirectory() as peaks:
        environment = os.environ | {
            "XDG_CACHE_HOME": str(cache),
            "PYTHONPATH": str(ROOT / "benchmarks" / "film" / "peaks"),
            "GOALREEL_PEAKS": peaks,
        }
        command = [sys.executable, *map(str, arguments)]
        start = time.perf_counter()
        answer = subprocess.run(
            command, cwd=folder, env=environment, stdout=-1, stderr=subprocess.STDOUT, text=True
        )
        seconds = time.perf_counter() - start
        if answer.returncode:
            raise RuntimeError(f"{command}: status {answer.returncode}:\n{answer.stdout}")
        processes: dict[str, list[Process]] = {}
        for path in sorted(Path(peaks).glob("*.json")):
            process = Process(**json.loads(path.read_text(encoding="utf-8")))
            processes.setdefault(path.name.partition(".")[0], []).append(process)
    return seconds, processes, answer.stdout


def run_workflow(
    folder: Path, cores: int, config: Sequence[str], cache: Path, targets: Sequence[str] = ()
) -> tuple[float, dict[str, list[Process]]]:
    """Run `snakemake` in a folder, its results in FOLDER/results. Raises RuntimeError.

    Return the seconds, and the processes of each program.
    """
    folder.mkdir(parents=True, exist_ok=True)
    command = ["-m", "snakemake", "--snakefile", ROOT / "Snakefile", "--directory", folder]
    command += ["-j", cores, *targets, "--config", "results=results", *config]
    return run_python(command, folder, cache)[:2]


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


@contextmanager
def pinned(cores: int):
    """Bind this process and its new children to some cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:cores])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


# Rows that are trainings, each in a process of its own


@dataclass(frozen=True)
class Measured:
    """A row in a round."""

    decisions: int
    waited: float  # seconds in which the first process summed, or waited for the others
    wall: float  # seconds
    cpu: float  # seconds
    others: float  # CPU seconds of all other processes of the machine
    load: float  # of the machine, over the minute before the row began

    @property
    def wall_ms(self) -> float:
        """Milliseconds of a decision."""
        return 1000 * self.wall / self.decisions

    @property
    def others_cores(self) -> float:
        """Cores that other processes kept busy."""
        return max(self.others / self.wall, 0.0)

    @property
    def cpu_ms(self) -> float:
        """Milliseconds of CPU time of a decision."""
        return 1000 * self.cpu / self.decisions


@dataclass
class Stopwatch:
    """Times a training between two counts of decisions."""

    first: int  # decisions at which it starts
    count: int  # decisions after which it stops
    load: float = field(default_factory=lambda: os.getloadavg()[0])
    waited: float = 0.0
    _marks: list[tuple[float, ...]] = field(default_factory=list)

    def going(self, decisions: int, *_) -> bool:
        """Read the clocks at the start and at the end, and return whether to go on."""
        due = self._marks[0][0] + self.count if self._marks else self.first
        if len(self._marks) < 2 and decisions >= due:
            self._marks.append((decisions, self.waited, time.perf_counter(), *cpu_times()))
        return len(self._marks) < 2

    def measured(self) -> Measured:
        start, end = self._marks
        return Measured(*(b - a for a, b in zip(start, end, strict=True)), self.load)


def cpu_times() -> tuple[float, float]:
    """Return the CPU time of this process and its children, living or not, and of all others."""
    process, times = psutil.Process(), psutil.cpu_times()
    own = sum(sum(p.cpu_times()[:4]) for p in (process, *process.children(recursive=True)))
    return own, sum((times.user, times.nice, times.system, times.irq, times.softirq)) - own


def compare_trainings(
    description: str,
    name: str,
    rows: Mapping[str, Callable[[Stopwatch], None]],
    decisions: tuple[int, int],
    header: Sequence[str],
    table: Callable[[Mapping[str, list[Measured]]], tuple[list[list[str]], str]],
    argv: list[str] | None,
    words: int = 1,
) -> None:
    """Measure all rows in turns, each in a process, or only the row of `--row` in this one.

    Args:
        description: of the program that calls.
        name: of the table.
        rows: functions that train until the stopwatch stops.
        decisions: of the stopwatch.
        header: of the table.
        table: returns the rows below the header and a note, given the figures of each row.
        argv: the arguments of the program.
        words: see write_table.
    """
    command = parser(description, runs=5)
    command.add_argument("--row", choices=rows, help="measure this row here, and print JSON")
    options = command.parse_args(argv)
    if options.row:
        rows[options.row](stopwatch := Stopwatch(*decisions))
        print(json.dumps(asdict(stopwatch.measured())))
        return
    module = sys.modules[table.__module__].__spec__.name
    works = {row: partial(lambda row: Measured(**row_process(module, row)), row) for row in rows}
    cells, note = table(found := take_turns(works, options.runs))
    every = [one for measured in found.values() for one in measured]
    loads, others = ([getattr(one, name) for one in every] for name in ("load", "others_cores"))
    notes = [
        f"{medians(options.runs)}: {decisions[1]:,} decisions of each row, from decision "
        f"{decisions[0]:,} on. CPU time is that of all processes of a row. {note}",
        f"others: cores that other processes kept busy, {max(others):.2f} at most. The machine's "
        f"load over the minute before a row was {min(loads):.1f} to {max(loads):.1f}.",
    ]
    write_table(options.output / name, header, cells, notes, words, TRAINING_PACKAGES)


def median(rounds: Sequence[Measured], name: str) -> float:
    """Return the median of a figure."""
    return statistics.median(getattr(one, name) for one in rounds)


def ratio(of: Sequence[Measured], to: Sequence[Measured], name: str) -> float:
    """Return the median over the rounds of a figure of `of`, divided by that of `to`."""
    pairs = zip(of, to, strict=True)
    return statistics.median(getattr(a, name) / getattr(b, name) for a, b in pairs)


# Tables


def digits(value: float) -> str:
    """Return a number with three digits, or a large one with commas."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def medians(runs: int) -> str:
    """Return the beginning of a note on the number of runs."""
    return f"Medians of {runs} runs, in turns" if runs > 1 else "One run"


def write_table(
    path: Path,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    notes: Iterable[str],
    words: int = 1,
    packages: Sequence[str] = FILM_PACKAGES,
) -> None:
    """Print a table with notes and the machine below it, and write PATH.md and PATH.csv.

    `words` columns of text come first. The machine names the versions of `packages`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    rows, machine = list(rows), describe_machine(packages)
    text = markdown(header, rows, [*notes, f"Machine: {machine}."], words)
    print(text)
    path.with_suffix(".md").write_text(text, encoding="utf-8")
    with path.with_suffix(".csv").open("w", encoding="utf-8", newline="") as file:
        plain = ([re.sub(r"(?<=\d),(?=\d)", "", cell) for cell in row] for row in rows)
        table = writer(file, lineterminator="\n")
        table.writerow([*header, "machine"])
        table.writerows([*row, machine] for row in plain)


def markdown(
    header: Sequence[str], rows: Iterable[Sequence[str]], notes: Iterable[str] = (), words: int = 1
) -> str:
    """Return a table in Markdown, with the notes as a list below it."""
    lines = [header, ["---"] * words + ["---:"] * (len(header) - words), *rows]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"{table}\n\n" + "".join(f"- {note}\n" for note in notes)


def describe_machine(packages: Sequence[str] = FILM_PACKAGES) -> str:
    """Return a line on the machine: processor, SIMD level, cores, system, precision, packages."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = re.search(r"^model name\s*: (.+)$", info, re.M)
    simd = next((flag for flag in _SIMD if re.search(rf"\b{flag}\b", info)), "no AVX2")
    parts = [
        model[1] if model else platform.machine(),
        f"{simd}, {available_cores()} of its {os.cpu_count()} cores",
        f"{platform.system()} {platform.machine()}; Python {platform.python_version()}",
        *(f"{name} {_version(name)}" for name in packages),
    ]
    if "torch" in packages:
        import torch

        from goalreel.training.session import computes_in_half

        half = computes_in_half(torch.device("cpu"))
        parts.append(f"PyTorch's {'bfloat16' if half else 'float32'} on CPUs")
    if "imageio-ffmpeg" in packages:
        import imageio_ffmpeg

        parts.append(f"ffmpeg {imageio_ffmpeg.get_ffmpeg_version()}")
    return ", ".join(parts)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
