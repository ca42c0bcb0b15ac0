"""How many environments a training from Mountain Car's state should step: 3, and the best number.

    step           how many environments play, with or without learning
    decisions/s    choices of an action per second of CPU time
    ratio, range   against one environment, in the same run, and the quartiles of these ratios

N environments take one gradient step for N decisions, of a batch N times as large as that of one.
The table is lane_counts.csv and lane_counts.md.

    python -m benchmarks.training.lane_counts            two minutes
    python -m benchmarks.training.lane_counts --runs 1   a first try
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.harness import ENV, medians, parser, rate_rows, write_table

NUMBERS = (1, 2, 3, 4, 8, 16, 32)
HEADER = ("step", "decisions/s", "ratio", "range")
_SECONDS = 0.7  # of CPU time, for a sample


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table."""
    import torch

    options = parser(__doc__, runs=21).parse_args(argv)
    torch.set_num_threads(1)
    groups = {
        name: {f"environments: {number}": contender(number, learns) for number in NUMBERS}
        for name, learns in (("playing", False), ("playing and learning", True))
    }
    rows = rate_rows(groups, options.runs, _SECONDS)
    notes = [
        f"{medians(options.runs)}. Decisions per second of CPU time, one thread each. range: the "
        "quartiles of the ratios of all runs.",
        f"{ENV} in the wrappers of gymnasium.make, an action for 12 frames; resets are part of the "
        "time. A training's log and evaluations are not.",
    ]
    packages = "torch", "numpy", "gymnasium"
    write_table(options.output / "lane_counts", HEADER, rows, notes, packages=packages)


def contender(lanes: int, learns: bool) -> Callable[[], int]:
    """Return a function that plays ten steps of all environments, as a training after exploring."""
    from goalreel.training.dqn.learner import Learner
    from goalreel.training.dqn.playing import Player, StateReplay
    from goalreel.training.dqn.settings import Settings

    settings = replace(Settings(), lanes=lanes, learn_every=lanes, exploration=1)
    rng, replay = np.random.default_rng(1), StateReplay(settings.buffer)
    learner = Learner(settings, 1)
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
