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
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from unittest import mock

import psutil
import yaml

from benchmarks.harness import ROOT, parser, row_process, take_turns

GAME, STICKY = "ALE/Pong-v5", 0.25  # of all trainings on Pong
LATEST = 20  # games whose mean return is that of a training


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
            self._marks.append((decisions, self.waited, time.perf_counter(), *cpu_seconds()))
        return len(self._marks) < 2

    def measured(self) -> Measured:
        start, end = self._marks
        return Measured(*(b - a for a, b in zip(start, end, strict=True)), self.load)


def cpu_seconds() -> tuple[float, float]:
    """Return the CPU time of this process and its children, living or not, and of all others."""
    process, times = psutil.Process(), psutil.cpu_times()
    own = sum(sum(p.cpu_times()[:4]) for p in (process, *process.children(recursive=True)))
    return own, sum((times.user, times.nice, times.system, times.irq, times.softirq)) - own


def measured_rows(
    module: str,
    description: str,
    rows: Mapping[str, Callable[[Stopwatch], None]],
    decisions: tuple[int, int],
    argv: list[str] | None,
) -> tuple[object, dict[str, list[Measured]] | None]:
    """Measure all rows in turns, each in a process, or only the row of `--row` in this one.

    `module` is the program that calls, and `decisions` are those of Stopwatch. Return the options,
    and the figures of each row, or None.
    """
    command = parser(description, runs=5)
    command.add_argument("--row", choices=rows, help="measure this row here, and print JSON")
    options = command.parse_args(argv)
    if options.row:
        rows[options.row](stopwatch := Stopwatch(*decisions))
        print(json.dumps(asdict(stopwatch.measured())))
        return options, None
    works = {name: partial(lambda row: Measured(**row_process(module, row)), name) for name in rows}
    return options, take_turns(works, options.runs)


def median(rounds: Sequence[Measured], name: str) -> float:
    """Return the median of a figure."""
    return statistics.median(getattr(one, name) for one in rounds)


def ratio(of: Sequence[Measured], to: Sequence[Measured], name: str) -> float:
    """Return the median over the rounds of a figure of `of`, divided by that of `to`."""
    pairs = zip(of, to, strict=True)
    return statistics.median(getattr(a, name) / getattr(b, name) for a, b in pairs)


def load_note(found: Mapping[str, Iterable[Measured]]) -> str:
    """Return a note on the other processes of the machine."""
    every = [one for rounds in found.values() for one in rounds]
    loads, others = ([getattr(one, name) for one in every] for name in ("load", "others_cores"))
    return (
        f"others: cores that other processes kept busy, {max(others):.2f} at most. The machine's "
        f"load over the minute before a row was {min(loads):.1f} to {max(loads):.1f}."
    )


def config_of(env: str, env_kwargs: Mapping, **options) -> dict:
    """Return the configuration of target `train`, with `options` of its section."""
    from goalreel.training.settings import with_defaults

    section = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))["train"]
    config = {"env": env, "env_kwargs": dict(env_kwargs), "env_wrappers": []}
    return config | {"max_episode_steps": None, "train": with_defaults(section | options, env)}


class _Stopped(Exception):  # noqa: N818
    """The training need not go on."""


def goalreel(clock: Stopwatch, **options) -> None:
    """Train on Pong as target `train` does, without its evaluations, as long as `clock.going`.

    It gets the decisions so far, the returns of the first process's latest games, and a function
    from stacks to actions. `options` are of the section `train`.
    """
    import torch

    from goalreel.training import session, training
    from goalreel.training.processes import Group

    def checked(kind: type) -> type:
        class Checked(kind):
            returns: tuple[float, ...] = ()

            @torch.no_grad()
            def act(self, stacks):
                return self.network(torch.from_numpy(stacks))[0].argmax(1).numpy()

            def iterate(self, done: int) -> list:
                if not clock.going(done, self.returns, self.act):
                    if torch.distributed.is_initialized():  # so that the other processes end
                        torch.distributed.destroy_process_group()
                    raise _Stopped
                games = super().iterate(done)
                self.returns = (*self.returns, *(game.return_ for game in games))[-LATEST:]
                return games

        return Checked

    def timed_sum(group: Group, values):
        began = time.perf_counter()
        values = group_sum(group, values)
        clock.waited += time.perf_counter() - began
        return values

    group_sum = Group.sum
    never = {"eval_freq": 10**9, "checkpoints": []}
    config = config_of(GAME, {"repeat_action_probability": STICKY}, **never | options)
    with (
        mock.patch.object(session, "Dqn", checked(session.Dqn)),
        mock.patch.object(session, "Ppo", checked(session.Ppo)),
        mock.patch.object(Group, "sum", timed_sum),
        tempfile.TemporaryDirectory() as folder,
        suppress(_Stopped),
    ):
        training.train(config, Path(folder, "checkpoint.pt"))
