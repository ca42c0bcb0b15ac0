"""Rows of a table that are trainings, each in a process of its own, and their clocks.

A row is measured between two counts of decisions, once it learns: wall-clock time, and CPU time of
its process and of all processes that it started. Rows take turns. Each reports the load of the
machine before its start, and the CPU time of other processes.
"""

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import psutil
import yaml

from benchmarks.harness import ROOT, available_cores, parser, row_process, take_turns


@dataclass(frozen=True)
class Measured:
    """A row in a round."""

    decisions: int
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
    _marks: list[tuple[float, ...]] = field(default_factory=list)

    def going(self, decisions: int, *_) -> bool:
        """Read the clocks at the start and at the end, and return whether to go on."""
        if len(self._marks) < 2 and decisions >= self._due:
            self._marks.append((decisions, time.perf_counter(), *_cpu_seconds()))
        return len(self._marks) < 2

    @property
    def _due(self) -> int:
        return self._marks[0][0] + self.count if self._marks else self.first

    def measured(self) -> Measured:
        start, end = self._marks
        return Measured(*(b - a for a, b in zip(start, end, strict=True)), self.load)


def _cpu_seconds() -> tuple[float, float]:
    """Return the CPU time of this process and its children, living or not, and of all others."""
    process, times = psutil.Process(), psutil.cpu_times()
    own = sum(sum(p.cpu_times()[:4]) for p in (process, *process.children(recursive=True)))
    return own, sum((times.user, times.nice, times.system, times.irq, times.softirq)) - own


def rows_measured(
    module: str,
    description: str,
    rows: Iterable[str],
    measure: Callable[[str], Measured],
    argv: list[str] | None,
    options: Mapping[str, dict] | None = None,
) -> tuple[object, dict[str, list[Measured]] | None]:
    """Measure all rows in turns, each in a process, or only the row of `--row` in this one.

    `module` is the program that calls. Each of its further `options` turns off measuring. Return
    the options, and the figures of each row, or None.
    """
    options, add = options or {}, (command := parser(description, runs=5)).add_argument
    add("--row", choices=rows, help="measure this row here, and print JSON")
    for name, settings in options.items():
        add(name, **settings)
    chosen = command.parse_args(argv)
    if chosen.row:
        print(json.dumps(asdict(measure(chosen.row))))
        return chosen, None
    if any(getattr(chosen, name.lstrip("-")) for name in options):
        return chosen, None
    works = {name: partial(lambda row: Measured(**row_process(module, row)), name) for name in rows}
    return chosen, take_turns(works, chosen.runs)


def median(rounds: Sequence[Measured], name: str) -> float:
    """Return the median of a figure."""
    return statistics.median(getattr(one, name) for one in rounds)


def ratio(of: Sequence[Measured], to: Sequence[Measured], name: str) -> float:
    """Return the median over the rounds of a figure of `of`, divided by that of `to`."""
    pairs = zip(of, to, strict=True)
    return statistics.median(getattr(a, name) / getattr(b, name) for a, b in pairs)


def load_note(found: Mapping[str, Sequence[Measured]]) -> str:
    """Return a note on the other processes of the machine."""
    every = [one for rounds in found.values() for one in rounds]
    loads, others = ([getattr(one, name) for one in every] for name in ("load", "others_cores"))
    return (
        f"others: cores that other processes kept busy, {max(others):.2f} at most. The machine's "
        f"load over the minute before a row was {min(loads):.1f} to {max(loads):.1f}."
    )


def goalreel(stopwatch: Stopwatch, half: bool = True, **options) -> None:
    """Train on Pong as rule `pixels` does, until the stopwatch has stopped.

    With `half`, compute in bfloat16 if the processor can. `options` are of the section `pixels`.
    """
    import torch

    from goalreel.training.pixels import learner, training
    from goalreel.training.pixels.presets import with_defaults
    from goalreel.training.pixels.settings import PipelineSettings

    class Timed(training.Trainer):
        def update(self) -> bool:
            learned = super().update()
            stopwatch.going(self.learned_steps)
            return learned

    training.Trainer = Timed
    if not half:
        learner.computes_in_half = lambda _: False
    section = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))["pixels"]
    # One evaluation, at the end, of a single game.
    decisions = stopwatch.first + stopwatch.count + 256
    section |= {"eval_freq": decisions, "n_eval_episodes": 1, "total_timesteps": decisions}
    section["checkpoints"] = []
    settings = PipelineSettings(**with_defaults(section | {"game": "ALE/Pong-v5"} | options))
    torch.set_num_threads(max(1, available_cores() - settings.collectors))
    with tempfile.TemporaryDirectory() as folder:
        training.train(settings, Path(folder, "saved.pt"))
