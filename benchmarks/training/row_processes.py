"""Rows of a table that are trainings, each a process of its own, and how they are timed.

A row is measured between two counts of decisions, once it learns: wall clock, and CPU time of its
process and all that it started. In each round all rows take turns, each round from another one on,
and each tells the machine's load before it began and the CPU time that others took meanwhile, so
that a reader sees where something else was computed beside. Ratios are those of the same round.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil
import yaml

from benchmarks.sample import RESULTS, ROOT
from benchmarks.table import available_cores, csv_text, describe_machine, markdown

PACKAGES = ("torch", "stable-baselines3", "ale-py", "gymnasium", "numpy")


@dataclass(frozen=True)
class Measured:
    """A row in a round."""

    decisions: int
    wall: float  # seconds
    cpu: float  # seconds
    others: float  # seconds of CPU time that all other processes of the machine took meanwhile
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
    """Times what happens between two counts of decisions."""

    first: int  # decisions at which it starts
    count: int  # decisions after which it stops
    load: float = field(default_factory=lambda: os.getloadavg()[0])
    _marks: list[tuple[float, ...]] = field(default_factory=list)

    def going(self, decisions: int, *_) -> bool:
        """Look at the clocks if it is to start or to stop; return whether to go on."""
        if self.running and decisions >= self._due:
            own = cpu_seconds()
            self._marks.append((decisions, time.perf_counter(), own, machine_seconds() - own))
        return self.running

    @property
    def _due(self) -> int:
        return self._marks[0][0] + self.count if self._marks else self.first

    @property
    def running(self) -> bool:
        """Whether it has not stopped."""
        return len(self._marks) < 2

    def measured(self) -> Measured:
        """Return what was measured."""
        start, end = self._marks
        return Measured(*(b - a for a, b in zip(start, end, strict=True)), self.load)


def cpu_seconds() -> float:
    """Return the CPU time of this process and its children, those that have ended too."""
    own = psutil.Process()
    running = [process.cpu_times()[:4] for process in (own, *own.children(recursive=True))]
    return sum(map(sum, running))


def machine_seconds() -> float:
    """Return the CPU time that the machine has spent on all processes."""
    times = psutil.cpu_times()
    return sum((times.user, times.nice, times.system, times.irq, times.softirq))


def in_turns(module: str, rows: Sequence[str], rounds: int) -> dict[str, list[Measured]]:
    """Return what each row measured in each round; a row is `python -m MODULE --row NAME`.

    Raises RuntimeError with all that a row said that failed.
    """
    found: dict[str, list[Measured]] = {name: [] for name in rows}
    for number in range(rounds):
        first = number % len(rows)
        for name in (*rows[first:], *rows[:first]):
            found[name].append(one := _run(module, name))
            print(
                f"round {number + 1} of {rounds}: {name}: {one.wall_ms:.2f} ms a decision, "
                f"CPU {one.cpu_ms:.2f}, load {one.load:.1f}, others {one.others_cores:.2f} cores",
                file=sys.stderr,
                flush=True,
            )
    return found


def _run(module: str, name: str) -> Measured:
    command = [sys.executable, "-m", module, "--row", name]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if answer.returncode:
        raise RuntimeError(f"{name} ended with status {answer.returncode}:\n{answer.stderr}")
    return Measured(**json.loads(answer.stdout.splitlines()[-1]))


def command_line(description: str, rows: Iterable[str]) -> argparse.ArgumentParser:
    """Return the options of a benchmark of such rows."""
    options = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--rounds", type=int, default=5, help="of which medians are told (5)")
    options.add_argument("--output", type=Path, default=RESULTS, help="folder for the tables")
    options.add_argument("--row", choices=rows, help="measure this one alone, and print JSON")
    return options


def tell(measured: Measured) -> None:
    """Print what a row measured, for `in_turns`."""
    print(json.dumps(asdict(measured)))


def write_table(
    path: Path, header: Sequence[str], rows: Sequence[Sequence[str]], notes: list[str], words: int
) -> None:
    """Print a table, and write it to `path`.md and `path`.csv; words: columns of text."""
    machine = describe_machine(available_cores(), PACKAGES)
    table = markdown(header, rows, [*notes, f"Machine: {machine}."], words)
    print(table)
    plain = [[re.sub(r"(?<=\d),(?=\d)", "", cell) for cell in row] for row in rows]
    path.with_suffix(".csv").write_text(csv_text(header, plain, machine), encoding="utf-8")
    path.with_suffix(".md").write_text(table, encoding="utf-8")


def median(rounds: Sequence[Measured], name: str) -> float:
    """Return the median of a figure."""
    return statistics.median(getattr(one, name) for one in rounds)


def ratio(of: Sequence[Measured], to: Sequence[Measured], name: str) -> float:
    """Return the median over the rounds of `of`'s figure divided by `to`'s."""
    pairs = zip(of, to, strict=True)
    return statistics.median(getattr(a, name) / getattr(b, name) for a, b in pairs)


def load_note(found: Mapping[str, Sequence[Measured]]) -> str:
    """Return a note on what else the machine computed."""
    every = [one for rounds in found.values() for one in rounds]
    loads, others = ([getattr(one, name) for one in every] for name in ("load", "others_cores"))
    return (
        "others: cores that other processes kept busy beside a row, "
        f"{max(others):.2f} at most; the machine's load over the minute before a row, the row "
        f"before it included, was {min(loads):.1f} to {max(loads):.1f}, "
        f"{statistics.median(loads):.1f} in the middle."
    )


def goalreel(stopwatch: Stopwatch, half: bool = True, **options) -> None:
    """Train on Pong as rule `pixels` does, until the stopwatch has stopped.

    half: whether to compute in bfloat16 where the processor can, as rule `pixels` does
    options: of the configuration's section `pixels`
    """
    import torch

    from goalreel.training.pixels import learner, training
    from goalreel.training.pixels.presets import filled
    from goalreel.training.pixels.settings import PipelineSettings

    class Timed(training.Trainer):
        def update(self, steps: int) -> bool:
            learned = super().update(steps)
            stopwatch.going(self.learned_from(steps))
            return learned

    training.Trainer = Timed
    if not half:
        learner.computes_in_half = lambda _: False
    section = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))["pixels"]
    # No evaluation until the end, and that of a single game.
    decisions = stopwatch.first + stopwatch.count + 256
    section |= {"evaluate_every": decisions, "checkpoints": [], "games": 1, "decisions": decisions}
    settings = PipelineSettings(**filled(section | {"game": "ALE/Pong-v5"} | options))
    torch.set_num_threads(max(1, available_cores() - settings.collectors))
    with tempfile.TemporaryDirectory() as folder:
        training.train(settings, Path(folder, "saved.pt"))
