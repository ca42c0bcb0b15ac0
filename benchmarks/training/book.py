"""The ablation of M. Lapan, "Deep Reinforcement Learning Hands-On" (2nd ed.), chapter 9, on Pong.

The rules are those of its public code (PacktPublishing/Deep-Reinforcement-Learning-Hands-On-Second-
Edition, Chapter09): the network of Mnih et al. (2015), batches of 32, Adam with 1e-4, a discount of
0.99. The replay buffer holds 100,000 decisions, and learning starts after 10,000. Epsilon falls
from 1 to 0.02 over 100,000 decisions. The target is copied every 1,000 updates.

    Baseline                    one environment, an update for each decision
    Without torch.no_grad()     acting and targets build the graph that gradients would need
    3 environments              batches of 3 x 32, an update for 3 decisions
    Wrappers + 3 environments   cheaper wrappers (AtariVectorEnv): no no-ops, the last of four
                                frames instead of the maximum of two, stacks of two
    goalreel                    target `train` with its preset

The table is book.csv and book.md. to_score.py has the minutes that the baseline and goalreel need.

    python -m benchmarks.training.book             25 minutes on two quiet cores
    python -m benchmarks.training.book --runs 1    5 minutes
"""

from functools import partial

from benchmarks.harness import Measured, Stopwatch, compare_trainings, median, ratio
from benchmarks.training.pong import goalreel

THREE = {"envs": 3, "batch": 96, "decisions": 3}
VARIANTS = {
    "Baseline": {},
    "Without torch.no_grad()": {"no_grad": False},
    "3 environments": THREE,
    "Wrappers + 3 environments": THREE | {"vector": True, "cheap": True},
}
PUBLISHED = {"3 environments": "+72.5%"}  # gains in decisions/s that the book has
START, WARM, MEASURED = 1024, 256, 1280  # decisions: before learning, not timed, and timed
HEADER = ("step", "decisions/s", "change", "the book's", "emulator frames/s",
          "CPU s per 1,000 decisions", "others, cores")  # fmt: skip
FRAME_SKIP = 4


def plain(name: str, stopwatch: Stopwatch) -> None:
    """Train by the plain loop."""
    from benchmarks.training.plain_dqn import Settings, train

    settings = Settings(**{"decisions": 1, "start": START, "exploration": 0} | VARIANTS[name])
    train(settings, stopwatch)


ROWS = {name: partial(plain, name) for name in VARIANTS} | {"goalreel": goalreel}


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table, or measure one row."""
    compare_trainings(__doc__, "book", ROWS, (START + WARM, MEASURED), HEADER, table, argv)


def table(found: dict[str, list[Measured]]) -> tuple[list[list[str]], str]:
    """Return the rows below HEADER, and a note."""
    rows = []
    for name, measured in found.items():
        speed = 1000 / median(measured, "wall_ms")
        gain = ratio(found["Baseline"], measured, "wall_ms") - 1
        rows.append(
            [
                *(name, f"{speed:,.0f}", "" if name == "Baseline" else f"{gain:+.1%}"),
                *(PUBLISHED.get(name, ""), f"{FRAME_SKIP * speed:,.0f}"),
                *(f"{median(measured, 'cpu_ms'):.1f}", f"{median(measured, 'others_cores'):.2f}"),
            ]
        )
    return rows, "The book's own figures are from another machine with a GPU."


if __name__ == "__main__":
    main()
