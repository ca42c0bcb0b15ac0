"""How many environments a baseline of deep Q-learning should step: 3, and the best number.

    environments       Gymnasium's, stepped one after another by one process
    playing, FPS       frames per second of playing alone: the network's actions, steps, transitions
    ratio of playing   that FPS divided by one environment's, the median of the rounds
    training, FPS      frames per second of playing and learning, in turns, in one process
    ratio of training  that FPS divided by one environment's, the median of the rounds
    share of playing   in the time of both

Learning has as many gradient steps for each frame as the baseline's settings say, whatever the
number of environments, so its cost for each frame is measured once a round; training's FPS is of
the sum of both costs. Printed, and written to lane_counts.csv and lane_counts.md.

    python -m pip install -r requirements.txt -r requirements-train.in
    python -m benchmarks.training.lane_counts              about a minute
    python -m benchmarks.training.lane_counts --rounds 1   a first try
"""

import argparse
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.sample import ENV, RESULTS, Sample
from benchmarks.table import csv_text, describe_machine, markdown
from benchmarks.training.rates import Rate, measure

NUMBERS = (1, 2, 3, 4, 8, 16, 32)
LEARNING = "learning"
HEADER = (
    *("environments", "playing, FPS", "ratio of playing", "training, FPS", "ratio of training"),
    "share of playing",
)
PACKAGES = ("torch", "numpy", "gymnasium")


@dataclass(frozen=True)
class Row:
    """What a number of environments comes to: seconds of CPU time for each frame, by rounds."""

    environments: int
    playing: tuple[float, ...]
    learning: tuple[float, ...]

    @property
    def training(self) -> tuple[float, ...]:
        """Of playing and learning together."""
        return tuple(sum(pair) for pair in zip(self.playing, self.learning, strict=True))

    def cells(self, one: "Row") -> tuple[str, ...]:
        """Return the cells below HEADER; `one` is the row of one environment."""
        shares = [a / b for a, b in zip(self.playing, self.training, strict=True)]
        return (
            *(str(self.environments), f"{_fps(self.playing):,.0f}", _ratio(one, self, "playing")),
            *(f"{_fps(self.training):,.0f}", _ratio(one, self, "training")),
            f"{statistics.median(shares):.1%}",
        )


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table."""
    import torch

    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = options.add_argument
    add("--rounds", type=int, default=21, help="rounds, of which the median is shown (21)")
    add("--seconds", type=float, default=0.3, help="of CPU time for each sample (0.3)")
    add("--output", type=Path, default=RESULTS, help="folder for the tables")
    chosen = options.parse_args(argv)
    if chosen.rounds < 1:
        options.error("--rounds must be positive")
    torch.set_num_threads(1)
    rates = measure({ENV: contenders()}, chosen.rounds, chosen.seconds)
    rows = rows_of(rates)
    machine = describe_machine(1, PACKAGES)
    cells = [row.cells(rows[0]) for row in rows]
    table = markdown(HEADER, cells, notes(rows, chosen.rounds, machine))
    print(table)
    chosen.output.mkdir(parents=True, exist_ok=True)
    plain = [[cell.replace(",", "") for cell in row] for row in cells]
    csv = csv_text([name.replace(",", "") for name in HEADER], plain, machine)
    Path(chosen.output, "lane_counts.csv").write_text(csv, encoding="utf-8")
    Path(chosen.output, "lane_counts.md").write_text(table, encoding="utf-8")


def contenders() -> dict[str, Callable[[], int]]:
    """Return who plays with each number of environments, and last who learns."""
    return {str(number): playing(number) for number in NUMBERS} | {LEARNING: learning()}


def playing(number: int) -> Callable[[], int]:
    """Return what plays ten steps of all environments, as a training does past its exploration."""
    from goalreel.training.dqn.learner import Learner
    from goalreel.training.dqn.playing import Player, StateReplay, transitions
    from goalreel.training.dqn.settings import VARIANTS

    settings = replace(VARIANTS["baseline"], lanes=number, exploration=1e-9)
    replay = StateReplay(settings.buffer)
    player = Player(settings, 1, Learner(settings, 1).values, np.random.default_rng(1))

    def run() -> int:
        frames = 0
        for _ in range(10):
            played = player.next()
            replay.append(transitions(played, settings.discount))
            frames += played.step.frames
        return frames

    return run


def learning() -> Callable[[], int]:
    """Return what takes the gradient steps that are due by `train_every` frames."""
    from goalreel.training.dqn.learner import Learner
    from goalreel.training.dqn.playing import Player, StateReplay, transitions
    from goalreel.training.dqn.settings import VARIANTS

    settings, dice = VARIANTS["baseline"], np.random.default_rng(1)
    learner, replay = Learner(settings, 1), StateReplay(settings.buffer)
    player = Player(settings, 1, learner.values, dice)
    for _ in range(settings.start):
        replay.append(transitions(player.next(), settings.discount))

    def run() -> int:
        for _ in range(settings.gradient_steps):
            learner.learn(replay.sample(settings.batch, dice))
        return settings.train_every

    return run


def rows_of(rates: Sequence[Rate]) -> list[Row]:
    """Return the rows of what was measured, in the order of `contenders`."""
    *players, learner = rates
    learned = _costs(learner.samples)
    return [
        Row(number, _costs(rate.samples), learned)
        for number, rate in zip(NUMBERS, players, strict=True)
    ]


def _costs(samples: Sequence[Sample]) -> tuple[float, ...]:
    return tuple(sample.seconds / sample.units for sample in samples)


def _fps(costs: Sequence[float]) -> float:
    return statistics.median(1 / cost for cost in costs)


def _ratio(one: Row, row: Row, of: str) -> str:
    pairs = zip(getattr(one, of), getattr(row, of), strict=True)
    return f"{statistics.median(a / b for a, b in pairs):.2f}"


def notes(rows: Sequence[Row], rounds: int, machine: str) -> list[str]:
    """Return what a reader of the table should know."""
    times = f"Medians of {rounds} rounds, in which" if rounds > 1 else "One round, in which"
    best = max(rows, key=lambda row: _fps(row.training))
    three = next(row for row in rows if row.environments == 3)
    learned = statistics.median(rows[0].learning)
    return [
        f"{times} all take turns; frames per second of CPU time, one thread each. Both ratios are "
        f"against one environment, in the same round.",
        f"Learning takes {1e6 * learned:,.0f} µs for each frame, so that no number of environments "
        f"has a training of the baseline exceed {_fps(rows[0].learning):,.0f} FPS.",
        f"The best number for training is {best.environments}, at {_fps(best.training):,.0f} FPS; "
        f"3 reach {_fps(three.training):,.0f}, 1 reaches {_fps(rows[0].training):,.0f}.",
        f"{ENV} in the wrappers of gymnasium.make; resets are part of the time. What a training "
        "does besides, its log and evaluations, is not.",
        f"Machine: {machine}.",
    ]


if __name__ == "__main__":
    main()
