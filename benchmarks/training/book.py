"""The ablation of M. Lapan, "Deep Reinforcement Learning Hands-On" (2nd ed.), chapter 9, on Pong.

The rules are those of its public code (PacktPublishing/Deep-Reinforcement-Learning-Hands-On-Second-
Edition, Chapter09): the network of Mnih et al. (2015), batches of 32, Adam with 1e-4, a discount of
0.99. The replay buffer holds 100,000 decisions, and learning starts after 10,000. Epsilon falls
from 1 to 0.02 over 100,000 decisions. The target is copied every 1,000 updates.

    Baseline                    one environment, an update for each decision
    Without torch.no_grad()     acting and targets build the graph that gradients would need
    3 environments              batches of 3 x 32, an update for 3 decisions
    Parallel                    a process plays; batches of 4 x 32, learned as fast as possible
    Wrappers + ...              cheaper wrappers (AtariVectorEnv): no no-ops, the last of four
                                frames instead of the maximum of two, stacks of two
    goalreel                    `snakemake pixels` with its preset `atari`

Minutes come from a training until 30 greedy games have a mean return of 18 (`--solve`), goalreel's
from its own evaluations (`--metrics`). The curves are pong_ROW.csv. The table is book.csv and
book.md.

    python -m benchmarks.training.book                     25 minutes on two quiet cores
    python -m benchmarks.training.book --solve baseline    hours, perhaps in the background
    python -m benchmarks.training.book --metrics results/pixels/metrics.json
"""

import csv
import json
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.harness import TRAINING_PACKAGES, medians, write_table
from benchmarks.training.plain_dqn import FRAME_SKIP, Settings, greedy_returns, train
from benchmarks.training.rows import (
    Measured,
    Stopwatch,
    goalreel,
    load_note,
    median,
    ratio,
    rows_measured,
)

BASELINE = Settings(decisions=1)
THREE, PARALLEL = {"envs": 3, "batch": 96, "decisions": 3}, {"free": True, "batch": 128}
WRAPPERS = {"vector": True, "cheap": True}
OURS = "goalreel"
BOOK = {
    "baseline": ("Baseline", BASELINE),
    "no_grad": ("Without torch.no_grad()", replace(BASELINE, no_grad=False)),
    "three": ("3 environments", replace(BASELINE, **THREE)),
    "parallel": ("Parallel", replace(BASELINE, **PARALLEL)),
    "wrappers_three": ("Wrappers + 3 environments", replace(BASELINE, **THREE, **WRAPPERS)),
    "wrappers_parallel": ("Wrappers + parallel", replace(BASELINE, **PARALLEL, **WRAPPERS)),
    OURS: ("goalreel", None),
}
PUBLISHED = {"three": "+72.5%"}  # gains in decisions/s that the book has
START, WARM, MEASURED = 1000, 200, 1200  # decisions: before learning, not timed, and timed
SOLVED, EVERY, HOPEFUL = 18, 10_000, 10  # mean return; decisions; of the latest training games
HEADER = ("step", "decisions/s", "change", "the book's", "emulator frames/s",
          "CPU s per 1,000 decisions", f"minutes to {SOLVED}", "others, cores")  # fmt: skip
CURVE = ("minutes", "decisions", "training return", "greedy return")


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table, or write a row's curve."""
    more = {
        "--solve": {"choices": list(BOOK)[:-1], "help": "train this row until it has solved Pong"},
        "--seed": {"type": int, "help": "of such a training (1)"},
        "--metrics": {"type": Path, "help": "metrics.json of `snakemake pixels`, for its curve"},
    }
    chosen, found = rows_measured("benchmarks.training.book", __doc__, BOOK, measure, argv, more)
    if chosen.solve:
        solve(chosen.solve, chosen.seed or 1, curve_of(chosen.output, chosen.solve))
    elif chosen.metrics:
        write_curve(curve_of(chosen.output, OURS), evaluations(chosen.metrics))
    elif found:
        rows = [cells(name, found, chosen.output) for name in BOOK]
        notes = [
            f"{medians(chosen.runs)}: {MEASURED:,} decisions of each row, {WARM} after learning "
            f"began. A decision lasts {FRAME_SKIP} emulator frames. CPU time is that of all "
            "processes. The book's own figures are from another machine with a GPU.",
            f"Minutes to {SOLVED}: of training, until 30 greedy games had that mean, or empty if "
            "no such training was run.",
            load_note(found),
        ]
        write_table(chosen.output / "book", HEADER, rows, notes, packages=TRAINING_PACKAGES)


def measure(name: str) -> Measured:
    """Measure a row in this process."""
    stopwatch = Stopwatch(START + WARM, MEASURED)
    if name == OURS:
        goalreel(stopwatch, learning_starts=START, exploration_fraction=0)
    else:
        train(replace(BOOK[name][1], start=START, exploration=0), stopwatch.going)
    return stopwatch.measured()


def curve_of(folder: Path, name: str) -> Path:
    """Return the path of a row's curve."""
    return folder / f"pong_{name}.csv"


def solve(name: str, seed: int, path: Path) -> None:
    """Train a row until it has solved the game, and write its curve.

    Minutes exclude evaluations, which start when the latest training games are close to it.
    """
    settings, start, paused, rows = BOOK[name][1], time.perf_counter(), 0.0, []
    due = EVERY

    def going(decisions: int, returns: Sequence[float], network) -> bool:
        nonlocal paused, due
        if decisions < due or not returns:
            return True
        due += EVERY
        mean, stopped = statistics.mean(returns), time.perf_counter()
        minutes = (stopped - start - paused) / 60
        evaluated = greedy_returns(network, settings) if mean >= HOPEFUL else None
        rows.append((f"{minutes:.2f}", decisions, f"{mean:.2f}", evaluated))
        write_curve(path, rows)
        paused += time.perf_counter() - stopped
        return evaluated is None or evaluated < SOLVED

    train(settings, going, seed)


def evaluations(metrics: Path) -> list[tuple]:
    """Return the rows of the curve of a training by goalreel."""
    found = json.loads(metrics.read_text(encoding="utf-8"))["metrics"]["evaluations"]
    columns = ((one["seconds"] / 60, one["checkpoint_step"], one["returns"]) for one in found)
    return [(f"{m:.2f}", step, None, statistics.mean(returns)) for m, step, returns in columns]


def write_curve(path: Path, rows: Sequence[tuple]) -> None:
    """Write the rows of a curve."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([CURVE, *rows])


def minutes_to_solve(path: Path) -> str:
    """Return the minutes of a curve's first evaluation that solved the game, or an empty string."""
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row[CURVE[3]] and float(row[CURVE[3]]) >= SOLVED:
                    return f"{float(row[CURVE[0]]):.0f}"
    return ""


def cells(name: str, found: dict[str, list[Measured]], folder: Path) -> list[str]:
    """Return the cells of a row below HEADER."""
    measured, baseline = found[name], found["baseline"]
    speed = 1000 / median(measured, "wall_ms")
    gain = ratio(baseline, measured, "wall_ms") - 1
    return [
        *(BOOK[name][0], f"{speed:,.0f}", "" if name == "baseline" else f"{gain:+.1%}"),
        *(PUBLISHED.get(name, ""), f"{FRAME_SKIP * speed:,.0f}"),
        *(f"{median(measured, 'cpu_ms'):.1f}", minutes_to_solve(curve_of(folder, name))),
        f"{median(measured, 'others_cores'):.2f}",
    ]


if __name__ == "__main__":
    main()
