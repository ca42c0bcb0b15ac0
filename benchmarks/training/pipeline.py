"""What the lock-free pixel pipeline gains: the ordinary design, each change to it alone, and all.

The ordinary design (ordinary.py): collectors pickle transitions, one at a time, into one
`multiprocessing.Queue` with its lock; the learner takes as many of them as it then learns samples,
in float32 and batches of 64, and gives the collectors its weights once an epoch. All the others
(designs.py) learn as many samples, too, but for those that take in all that comes. Every design has
the same environments (Mountain Car from pixels), the same network and as many processes; they take
turns, and each is measured for some seconds once it is under way. Printed, and written to
pipeline.csv and pipeline.md.

    python -m benchmarks.training.pipeline   less than eight minutes on two quiet cores
    python -m benchmarks.training.pipeline --rounds 1 --seconds 0.1 --warm 0 \
        --collectors 1 --output FOLDER
                                             whether all of them run: a minute
"""

import argparse
import os
import statistics
import sys
from dataclasses import astuple, dataclass
from pathlib import Path

for _name in ("OMP", "OPENBLAS", "MKL"):  # one thread a process, the learner's too
    os.environ[f"{_name}_NUM_THREADS"] = "1"

from benchmarks.sample import RESULTS  # noqa: E402
from benchmarks.table import available_cores, csv_text, describe_machine, markdown  # noqa: E402
from benchmarks.training.designs import ALL, BOUND, DESIGNS, ORDINARY, Design, experience  # noqa: E402
from benchmarks.training.pipeline_run import EPOCH_SAMPLES, Work  # noqa: E402

SKIP = 4
EPOCH_STEPS = 2500
HEADER = ("design", "experience, frames/s", "training, samples/s", "learner busy",
          "collectors blocked", "epoch, s", "steps a sample")  # fmt: skip
CLAIMS = (("experience", 0, 0.8), ("throughput", 1, 1.5), ("blocking", 3, -0.9),
          ("epoch time", 4, -0.6))  # fmt: skip


@dataclass(frozen=True)
class Found:
    """Of a design: what it did in a second, and how.

    experience: frames; training: samples; busy: share of the learner's time; blocked: of the
    collectors'; epoch: seconds of one; ratio: steps taken in for each sample
    """

    experience: float
    training: float
    busy: float
    blocked: float
    epoch: float
    ratio: float


def measure(design: Design, learner, options: argparse.Namespace) -> Found:
    """Run a design, and measure it once it is under way.

    learner: PixelLearner of the design's settings, which goes on from round to round
    """
    with experience(design, options, learner.weights()) as source:
        work = Work(design, learner, source)
        work.go_on(options.warm)
        counts = work.go_on(options.seconds)
    rates = counts.steps / counts.passed, counts.samples / counts.passed
    shares = counts.busy / counts.passed, counts.blocked / counts.passed / options.collectors
    times = [one / rate if rate else float("inf") for one, rate in
             zip((EPOCH_STEPS, EPOCH_SAMPLES), rates, strict=True)]  # fmt: skip
    return Found(SKIP * rates[0], rates[1], *shares, max(times), rates[0] / rates[1])


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table."""
    options = parse(argv)
    learners = make_learners()
    found: dict[str, list[Found]] = {name: [] for name in DESIGNS}
    for number in range(options.rounds):
        for name, design in DESIGNS.items():
            one = measure(design, learners[design.learner], options)
            found[name].append(one)
            say(f"round {number + 1} of {options.rounds}: {name}: {' | '.join(cells(one))}")
    medians = {
        name: Found(*map(statistics.median, zip(*map(astuple, some), strict=True)))
        for name, some in found.items()
    }
    machine = describe_machine(available_cores(), ("numpy", "torch"))
    rows = [[name, *cells(one)] for name, one in medians.items()]
    table = markdown(HEADER, rows, notes(options, medians, found, machine))
    print(table)
    plain = [[name, *(f"{value:.4g}" for value in astuple(one))] for name, one in medians.items()]
    options.output.mkdir(parents=True, exist_ok=True)
    csv = csv_text(HEADER, plain, machine)
    Path(options.output, "pipeline.csv").write_text(csv, encoding="utf-8")
    Path(options.output, "pipeline.md").write_text(table, encoding="utf-8")


def make_learners() -> dict:
    """Return a learner for each way of learning; what is compiled is compiled here."""
    import torch

    from goalreel.training.pixels.learner import PixelLearner

    torch.set_num_threads(1)
    learners = {}
    for name, design in DESIGNS.items():
        if design.learner not in learners:
            learners[design.learner] = PixelLearner(design.learner, 3, 0)
            say(f"learner made: {name}")
    return learners


def say(line: str) -> None:
    """Tell how far it is."""
    print(line, file=sys.stderr, flush=True)


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Return the options of a command line."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = options.add_argument
    add("--collectors", type=int, default=2, help="processes beside the learner (2)")
    add("--environments", type=int, default=8, help="of each collector (8)")
    add("--epsilon", type=float, default=0.1, help="share of random actions (0.1)")
    add("--warm", type=float, default=2, help="seconds that each works before (2)")
    add("--seconds", type=float, default=6, help="that each is measured at least (6)")
    add("--rounds", type=int, default=3, help="of all designs, of which medians are told (3)")
    add("--output", type=Path, default=RESULTS, help="folder for the tables")
    chosen = options.parse_args(argv)
    if chosen.rounds < 1 or chosen.seconds <= 0:
        options.error("--rounds and --seconds must be positive")
    return chosen


def cells(found: Found) -> list[str]:
    """Return the cells below HEADER but the first."""
    return [
        *(f"{found.experience:,.0f}", f"{found.training:,.0f}"),
        *(f"{found.busy:.0%}", f"{found.blocked:.1%}", f"{found.epoch:.2f}", f"{found.ratio:.2f}"),
    ]


def notes(
    options: argparse.Namespace,
    medians: dict[str, Found],
    found: dict[str, list[Found]],
    machine: str,
) -> list[str]:
    """Return what a reader of the table should know."""
    ends = {ALL: "All", BOUND: "All, at the ordinary ratio"}
    gains = [
        f"{told}, against the ordinary design: "
        + "; ".join(gain(name, claim, medians, found) for claim in CLAIMS)
        + "."
        for name, told in ends.items()
    ]
    over = "one round"
    if options.rounds > 1:
        over = f"medians of {options.rounds} rounds, with their range in brackets"
    return [
        *gains,
        "steps a sample: taken in for each that is learned. The ordinary design takes one, and the "
        "faster side waits for the other. Where all that comes is taken in (all, a thread takes "
        "all there is) neither waits, and a change of the ratio is a part of what is gained; at "
        "the ordinary ratio it is not.",
        "experience: frames of the environments that reached the replay buffer. learner busy: the "
        "share of its time in which it samples and learns. collectors blocked: the share of their "
        "time in which they wait for room.",
        f"epoch: until {SKIP * EPOCH_STEPS:,} frames are taken in and {EPOCH_SAMPLES:,} samples "
        "learned, whichever takes longer, by the two rates.",
        f"{options.collectors} collectors of {options.environments} environments, "
        f"{options.epsilon:.0%} random actions, one thread each and the learner; whole updates for "
        f"{options.seconds:g} s or more, after {options.warm:g} s that are not counted; {over}. "
        "All take turns in a round; compiling is done before.",
        f"Machine: {machine}.",
    ]


def gain(name: str, claim: tuple, medians: dict[str, Found], found: dict) -> str:
    """Return a change against the ordinary design, over the rounds, and what is published."""
    what, place, published = claim
    pairs = zip(found[ORDINARY], found[name], strict=True)
    changes = [_change(astuple(a)[place], astuple(b)[place]) for a, b in pairs]
    known = [change for change in changes if change is not None]
    whole = _change(astuple(medians[ORDINARY])[place], astuple(medians[name])[place])
    told = "from nothing" if whole is None else f"{whole:+.0%}"
    if len(known) > 1:
        told += f" [{min(known):+.0%} to {max(known):+.0%}]"
    return f"{what} {told} (published: {published:+.0%})"


def _change(before: float, after: float) -> float | None:
    return after / before - 1 if before else None


if __name__ == "__main__":
    main()
