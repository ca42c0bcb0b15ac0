"""The equal processes of a training on Pong: their speed, and how long they wait for each other.

A row has a number of processes and a batch: 32 x 4 and 512 x 4 are four updates of 32 or 512
samples, after as many decisions as give eight samples to each. The table is processes.csv and
processes.md.

    python -m benchmarks.training.processes            15 minutes on two quiet cores
    python -m benchmarks.training.processes --runs 1   3 minutes
"""

from functools import partial

from benchmarks.harness import (
    TRAINING_PACKAGES,
    Measured,
    Stopwatch,
    available_cores,
    load_note,
    measured_rows,
    median,
    medians,
    write_table,
)
from benchmarks.training.pong import goalreel

START, FIRST, MEASURED, RATIO, STEPS = 1024, 2048, 2048, 8, 4
HEADER = ("processes", "batch", "decisions/s", "batches/s", "cores busy", "waiting",
          "ms of a sum", "s for 10,000 decisions", "others, cores")  # fmt: skip


def train(processes: int, batch: int, stopwatch: Stopwatch) -> None:
    """Train by target `train` with its preset for ALE games, by DQN."""
    same = {"algorithm": "dqn", "learning_starts": START, "exploration_fraction": 0, "n_envs": 8}
    same |= {"batch_size": batch, "gradient_steps": STEPS, "train_freq": STEPS * batch // RATIO}
    goalreel(stopwatch, processes=processes, **same)


ROWS = {f"{p}, {b}": partial(train, p, b) for b in (32, 512) for p in (1, 2, 4)}


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the tables, or measure one row."""
    module, decisions = "benchmarks.training.processes", (FIRST, MEASURED)
    chosen, found = measured_rows(module, __doc__, ROWS, decisions, argv)
    if found:
        rows = [cells(*row.split(", "), found[row]) for row in ROWS]
        notes = [
            f"{medians(chosen.runs)}: {MEASURED:,} decisions of each row, {RATIO} samples each. "
            f"cores busy: CPU time of all processes by wall-clock time, of {available_cores()}. "
            "waiting: share of the time in which the first process sums gradients with the others, "
            "or waits for them.",
            load_note(found),
        ]
        write_table(chosen.output / "processes", HEADER, rows, notes, 0, TRAINING_PACKAGES)


def cells(processes: str, batch: str, measured: list[Measured]) -> list[str]:
    """Return the cells of a row below HEADER."""
    wall = median(measured, "wall_ms")
    updates = RATIO / int(batch)  # of a decision
    waiting = sum(one.waited for one in measured) / sum(one.wall for one in measured)
    return [
        *(processes, f"{batch} x {STEPS}", f"{1000 / wall:,.0f}", f"{1000 / wall * updates:,.1f}"),
        *(f"{median(measured, 'cpu_ms') / wall:.2f}", f"{waiting:.0%}"),
        f"{waiting * wall / updates:.2f}" if processes != "1" else "-",
        *(f"{10 * wall:.1f}", f"{median(measured, 'others_cores'):.2f}"),
    ]


if __name__ == "__main__":
    main()
