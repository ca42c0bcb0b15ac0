"""The equal processes of a training on Pong: their speed, and how long they wait for each other.

A row has a number of processes and a batch: 32 x 4 and 512 x 4 are four updates of 32 or 512
samples, after as many decisions as give eight samples to each. The table is processes.csv and
processes.md.

    python -m benchmarks.training.processes            15 minutes on two quiet cores
    python -m benchmarks.training.processes --runs 1   3 minutes
"""

from functools import partial

from benchmarks.harness import Measured, Stopwatch, compare_trainings, median
from benchmarks.training.pong import goalreel

START, FIRST, MEASURED, RATIO, STEPS = 1024, 2048, 2048, 8, 4
HEADER = ("processes", "batch", "decisions/s", "batches/s", "cores busy", "waiting",
          "ms of a sum", "s for 10,000 decisions", "others, cores")  # fmt: skip


def train(processes: int, batch: int, stopwatch: Stopwatch) -> None:
    """Train by target `train` with its preset for ALE games, by DQN."""
    same = {"algorithm": "dqn", "learning_starts": START, "exploration_fraction": 0, "n_envs": 8}
    same |= {"batch_size": batch, "gradient_steps": STEPS, "train_freq": STEPS * batch // RATIO}
    goalreel(stopwatch, processes=processes, threads=1, **same)


ROWS = {f"{p}, {b}": partial(train, p, b) for b in (32, 512) for p in (1, 2, 4)}


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table, or measure one row."""
    compare_trainings(__doc__, "processes", ROWS, (FIRST, MEASURED), HEADER, table, argv, 0)


def table(found: dict[str, list[Measured]]) -> tuple[list[list[str]], str]:
    """Return the rows below HEADER, and a note."""
    rows = []
    for row, measured in found.items():
        (processes, batch), wall = row.split(", "), median(measured, "wall_ms")
        speed, updates = 1000 / wall, RATIO / int(batch)  # of a second, of a decision
        waiting = sum(one.waited for one in measured) / sum(one.wall for one in measured)
        rows.append(
            [
                *(processes, f"{batch} x {STEPS}", f"{speed:,.0f}", f"{speed * updates:,.1f}"),
                *(f"{median(measured, 'cpu_ms') / wall:.2f}", f"{waiting:.0%}"),
                f"{waiting * wall / updates:.2f}" if processes != "1" else "-",
                *(f"{10 * wall:.1f}", f"{median(measured, 'others_cores'):.2f}"),
            ]
        )
    return rows, (
        "cores busy: CPU time of all processes by wall-clock time. waiting: share of the time in "
        "which the first process sums gradients with the others, or waits for them."
    )


if __name__ == "__main__":
    main()
