"""What the lock-free pixel pipeline gains: the ordinary design, each change to it alone, and all.

The ordinary design (ordinary.py): collectors pickle transitions, one at a time, into one
`multiprocessing.Queue` with its lock; the learner takes as many of them as it then learns samples,
in float32 and batches of 64, and gives the collectors its weights once an epoch. Every design has
the same environments (Mountain Car from pixels), the same network and as many processes; each is
measured for some seconds once it is under way. Printed, and written to training.csv and
training.md.

    python benchmarks/training.py            takes five minutes on two quiet cores
"""

import argparse
import contextlib
import importlib.metadata
import os
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, astuple, dataclass, fields, replace
from pathlib import Path

for _name in ("OMP", "OPENBLAS", "MKL"):  # one thread a process, the learner's too
    os.environ[f"{_name}_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402
from ordinary import SHAPE, STACK, WAITING, FramesOnce, Players, StackReplay  # noqa: E402
from sample import ENV  # noqa: E402
from table import available_cores, csv_text, describe_machine, markdown  # noqa: E402

from goalreel.games import GameSettings  # noqa: E402
from goalreel.pixels.collectors import Collectors, Crew  # noqa: E402
from goalreel.pixels.consolidation import BATCH, Consolidation  # noqa: E402
from goalreel.pixels.frame_replay import FrameReplay  # noqa: E402
from goalreel.pixels.learner_settings import LearnerSettings  # noqa: E402

SKIP = 4
EPOCH_STEPS, EPOCH_SAMPLES = 2500, 2500
_COLLECTORS, _REPLAY, _START = 2, 8000, 1000
HEADER = ("design", "experience, frames/s", "training, samples/s", "learner busy",
          "collectors blocked", "epoch, s")  # fmt: skip
CLAIMS = (("experience", 0, 0.8), ("throughput", 1, 1.5), ("blocking", 3, -0.9),
          ("epoch time", 4, -0.6))  # fmt: skip


@dataclass(frozen=True)
class Design:
    """Which changes to the ordinary design are made."""

    once: bool = False
    rings: bool = False
    thread: bool = False
    large: bool = False
    autocast: bool = False
    compile: bool = False
    weights: bool = False

    @property
    def learner(self) -> LearnerSettings:
        """How it learns."""
        batch, accumulation = (512, 4) if self.large else (64, 1)
        return LearnerSettings(
            *(batch, accumulation), autocast=self.autocast, compile=self.compile, device="cpu"
        )


ORDINARY = Design()
DESIGNS = {
    "ordinary": ORDINARY,
    "frames once": replace(ORDINARY, once=True),
    "rings, frames once": replace(ORDINARY, rings=True),
    f"a thread takes {BATCH:,} at a time": replace(ORDINARY, thread=True),
    "batches of 4 x 512": replace(ORDINARY, large=True),
    "bfloat16": replace(ORDINARY, autocast=True),
    "torch.compile": replace(ORDINARY, compile=True),
    "weights after every update": replace(ORDINARY, weights=True),
    "all": Design(*[True] * len(fields(Design))),
}


@dataclass(frozen=True)
class Found:
    """Of a design: frames/s, samples/s, shares of learner and collectors, seconds of an epoch."""

    experience: float
    training: float
    busy: float
    blocked: float
    epoch: float


class Queued:
    """Experience by a queue."""

    def __init__(self, design: Design, players: Players):
        """Make the replay buffer."""
        lanes = players.lanes * _COLLECTORS
        self._players, self.publish = players, players.publish
        self.replay = FramesOnce(lanes, _REPLAY) if design.once else StackReplay(_REPLAY)
        self.steps = 0

    def take(self, most: int) -> int:
        """Move up to `most` steps into the buffer."""
        items = self._players.take(most)
        if items:
            self.replay.append(items)
        self.steps += len(items)
        return len(items)

    def blocked(self) -> float:
        """Return the seconds that collectors waited."""
        return self._players.blocked()


class Ringed:
    """Experience by goalreel's rings."""

    def __init__(self, collectors: Collectors, lanes: int):
        """Make the replay buffer."""
        self._collectors = collectors
        self.replay = FrameReplay(lanes * _COLLECTORS, _REPLAY // lanes // _COLLECTORS, SHAPE,
                                  STACK, 32)  # fmt: skip
        self._moving = Consolidation(collectors.rings, self.replay, lanes)
        self.publish = collectors.publish

    @property
    def steps(self) -> int:
        """Steps that are in the buffer."""
        return self._moving.steps

    def take(self, most: int) -> int:
        """Move up to `most` steps into the buffer."""
        self._moving.limit = self._moving.steps + most
        return self._moving.drain()

    def blocked(self) -> float:
        """Return the seconds that collectors waited."""
        return self._collectors.counted()["blocked"] / 1e9


@contextlib.contextmanager
def experience(design: Design, lanes: int, epsilon: float, weights) -> Iterator[Queued | Ringed]:
    """Yield what gives a design its experience."""
    if not design.rings:
        told = (_COLLECTORS, lanes, epsilon, weights, design.once, design.weights)
        with Players(*told) as players:
            yield Queued(design, players)
        return
    game = asdict(GameSettings(ENV).filled())
    capacity = WAITING // _COLLECTORS // lanes * lanes  # in all as many as the queue holds
    crew = Crew(
        *(sys.executable, game, (0,), _COLLECTORS, lanes, SHAPE, STACK, capacity),
        block=True,
    )
    with Collectors(crew, weights, epsilon) as collectors:
        yield Ringed(collectors, lanes)


def measure(design: Design, lanes: int, epsilon: float, seconds: float) -> Found:
    """Run a design, and measure it once it is under way."""
    from goalreel.pixels.pixel_learner import PixelLearner

    learner, dice = PixelLearner(design.learner, 3, 0), np.random.default_rng(0)
    batch, accumulation = design.learner.batch, design.learner.accumulation
    with experience(design, lanes, epsilon, learner.weights()) as source:
        while source.steps < _START:
            source.take(_START)
            time.sleep(0.01)
        learner.learn([source.replay.sample(batch, dice)])
        stop = threading.Event()
        mover = threading.Thread(target=keep_moving, args=(source, stop))
        if design.thread:
            mover.start()
        begun, steps, blocked = time.monotonic(), source.steps, source.blocked()
        busy, samples, epoch = 0.0, 0, 0
        while (now := time.monotonic()) - begun < seconds:
            if not design.thread:
                source.take(batch * accumulation)
                now = time.monotonic()
            batches = [source.replay.sample(batch, dice) for _ in range(accumulation)]
            learner.learn(batches)
            samples, busy = samples + batch * accumulation, busy + time.monotonic() - now
            if design.weights or samples // EPOCH_SAMPLES > epoch:
                source.publish(learner.weights())
                epoch = samples // EPOCH_SAMPLES
        passed = time.monotonic() - begun
        taken, blocked = source.steps - steps, source.blocked() - blocked
        stop.set()
        if design.thread:
            mover.join()
    rates = taken / passed, samples / passed
    longest = max(EPOCH_STEPS / rates[0], EPOCH_SAMPLES / rates[1])
    return Found(SKIP * rates[0], rates[1], busy / passed, blocked / passed / _COLLECTORS, longest)


def keep_moving(source: Queued | Ringed, stop: threading.Event) -> None:
    """Move experience in large batches, or what there is after a short wait."""
    while not stop.is_set():
        if not source.take(BATCH):
            stop.wait(0.002)


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table."""
    options = parse(argv)
    import torch

    torch.set_num_threads(1)
    found: dict[str, list[Found]] = {name: [] for name in DESIGNS}
    for _ in range(options.rounds):
        for name, design in DESIGNS.items():
            one = measure(design, options.environments, options.epsilon, options.seconds)
            found[name].append(one)
            print(f"{name}: {' | '.join(cells(one))}", file=sys.stderr)
    medians = {
        name: Found(*map(statistics.median, zip(*map(astuple, some), strict=True)))
        for name, some in found.items()
    }
    rows = [[name, *cells(one)] for name, one in medians.items()]
    machine = describe_machine(available_cores())
    told = notes(options, medians, machine)
    table = markdown(HEADER, rows, told)
    print(table)
    output = Path(__file__).parent
    plain = [[name, *(f"{value:.4g}" for value in astuple(one))] for name, one in medians.items()]
    (output / "training.csv").write_text(csv_text(HEADER, plain, machine), encoding="utf-8")
    (output / "training.md").write_text(table, encoding="utf-8")


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Return the options of a command line."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = options.add_argument
    add("--environments", type=int, default=8, help="of each of the two collectors (8)")
    add("--epsilon", type=float, default=0.1, help="share of random actions (0.1)")
    add("--seconds", type=float, default=15, help="that each design is measured (15)")
    add("--rounds", type=int, default=1, help="of all designs, of which medians are told (1)")
    return options.parse_args(argv)


def cells(found: Found) -> list[str]:
    """Return the cells below HEADER but the first."""
    return [
        *(f"{found.experience:,.0f}", f"{found.training:,.0f}"),
        *(f"{found.busy:.0%}", f"{found.blocked:.1%}", f"{found.epoch:.2f}"),
    ]


def notes(options: argparse.Namespace, found: dict[str, Found], machine: str) -> list[str]:
    """Return what a reader of the table should know."""
    first, last = astuple(found["ordinary"]), astuple(found["all"])
    claims = [
        f"{name} {_change(first[place], last[place])} (published: {claim:+.0%})"
        for name, place, claim in CLAIMS
    ]
    return [
        f"All, against the ordinary design: {', '.join(claims)}.",
        "experience: frames of the environments that reached the replay buffer. learner busy: the "
        "share of its time in which it samples and learns. collectors blocked: the share of their "
        "time in which they wait for room.",
        f"epoch: until {SKIP * EPOCH_STEPS:,} frames are taken in and {EPOCH_SAMPLES:,} samples "
        "learned, whichever takes longer, by the two rates.",
        f"{_COLLECTORS} collectors of {options.environments} environments, {options.epsilon:.0%} "
        f"random actions, one thread each and the learner; {options.seconds:g} s each, the median "
        f"of {options.rounds}. Compiling is done before the clock starts.",
        f"PyTorch {importlib.metadata.version('torch')}. Machine: {machine}.",
    ]


def _change(before: float, after: float) -> str:
    return f"{after / before - 1:+.0%}" if before else "from nothing"


if __name__ == "__main__":
    main()
