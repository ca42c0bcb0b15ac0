"""How many environments a training from Mountain Car's state should step: 3, and the best number.

    step           how many environments play, with or without learning
    decisions/s    choices of an action per second of CPU time, the median of the rounds
    Δ, ratio       against one environment, in the same round
    range          the quartiles of the rounds' ratios: half of them lie between

N environments take one gradient step for N decisions, of a batch N times as large as that of one.
Printed, and written to lane_counts.csv and lane_counts.md.

    python -m pip install -r envs/locks/train.txt
    python -m benchmarks.training.lane_counts              about two minutes
    python -m benchmarks.training.lane_counts --rounds 1   a first try
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.table import csv_text, describe_machine, markdown
from benchmarks.training.rates import measure, of_rounds, parse

NUMBERS = (1, 2, 3, 4, 8, 16, 32)
HEADER = ("step", "decisions/s", "Δ", "ratio", "range")


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table."""
    import torch

    options = parse(__doc__, argv)
    torch.set_num_threads(1)
    groups = {
        name: {f"environments: {number}": contender(number, learns) for number in NUMBERS}
        for name, learns in (("playing", False), ("playing and learning", True))
    }
    rates = measure(groups, options.rounds, options.seconds)
    best = max(rates[len(NUMBERS) :], key=lambda rate: rate.fps)
    machine = describe_machine(1, ("torch", "numpy", "gymnasium"))
    notes = [
        f"{of_rounds(options.rounds)} Decisions per second of CPU time, one thread each.",
        f"The most decisions per second: {best.step}, {best.fps:,.0f}.",
        "MountainCar-v0 in the wrappers of gymnasium.make, an action for 12 frames; resets are "
        "part of the time. A training's log and evaluations are not.",
        f"Machine: {machine}.",
    ]
    cells = [rate.cells() for rate in rates]
    table = markdown(HEADER, cells, notes)
    print(table)
    options.output.mkdir(parents=True, exist_ok=True)
    plain = [[cell.replace(",", "") for cell in row] for row in cells]
    csv = csv_text(HEADER, plain, machine)
    Path(options.output, "lane_counts.csv").write_text(csv, encoding="utf-8")
    Path(options.output, "lane_counts.md").write_text(table, encoding="utf-8")


def contender(lanes: int, learns: bool) -> Callable[[], int]:
    """Return what plays ten steps of all environments, as a training does past its exploration."""
    from goalreel.training.dqn.learner import Learner
    from goalreel.training.dqn.playing import Player, StateReplay
    from goalreel.training.dqn.settings import Settings

    settings = replace(Settings(), lanes=lanes, learn_every=lanes, exploration=1)
    rng, replay, learner = (
        np.random.default_rng(1),
        StateReplay(settings.buffer),
        Learner(settings, 1),
    )
    player = Player(settings, 1, learner.values, rng)

    def run() -> int:
        for _ in range(10):
            replay.append(player.next().batch)
            if learns:
                learner.learn(replay.sample(settings.batch * settings.learn_every, rng))
        return 10 * lanes

    return run


if __name__ == "__main__":
    main()
