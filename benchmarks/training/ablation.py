"""Variants of deep Q-learning from the state of MountainCar-v0: a baseline and changes to it.

Each variant of goalreel.training.dqn.settings is trained from the seeds 1, 2, ..., one training
after another on one thread, seed by seed. Run it on an idle machine, because it reports times. The
table is ablation.csv and ablation.md.

    python -m benchmarks.training.ablation    two minutes
"""

import math
import os
import statistics
import sys

from benchmarks.harness import parser, write_table
from goalreel.training.dqn.settings import VARIANTS, Settings
from goalreel.training.shared_memory.child_process import ONE_THREAD

HEADER = ("Step", "decisions/s", "Δ", "frames/s", "CPU, s", "Time, s", "ΔTime", "Solved",
          "Mean return")  # fmt: skip
TITLES = {
    "baseline": "Baseline",
    "without_no_grad": "Without torch.no_grad()",
    "environments_3": "3 environments",
    "wrappers_environments": "Wrappers + 3 environments",
    "fast": "Wrappers + 16 environments, batch x 4",
}
NOTE = (
    "Medians over {runs} seeds. A decision is a choice of action, which lasts up to "
    f"{Settings.frame_skip} frames. CPU: CPU time of a training. Time: its wall clock until it is "
    "solved, by a greedy evaluation over 100 fixed seeds, every 500 decisions and outside both "
    "times, with a mean return of -110 or better. A training gives up after "
    f"{Settings.total_timesteps:,} decisions. Mean return: of the last evaluation."
)


def main(argv: list[str] | None = None) -> None:
    """Train all variants from all seeds, and write the table."""
    os.environ |= ONE_THREAD  # of NumPy, which is imported below
    import torch

    from goalreel.training.dqn.training import train

    options = parser(__doc__, runs=5).parse_args(argv)
    torch.set_num_threads(1)
    found: dict[str, list] = {variant: [] for variant in VARIANTS}
    for seed in range(1, options.runs + 1):
        for variant, settings in VARIANTS.items():
            found[variant].append(train(settings, seed).metrics)
            print(f"{variant}, seed {seed}: {found[variant][-1]}", file=sys.stderr)
    rows = [cells_of(variant, found) for variant in found]
    notes, packages = [NOTE.format(runs=options.runs)], ("torch", "numpy", "gymnasium")
    write_table(options.output / "ablation", HEADER, rows, notes, packages=packages)


def cells_of(variant: str, found: dict[str, list]) -> list[str]:
    """Return the row of a variant: medians, and changes against the baseline."""

    def figures(name: str) -> tuple[float, float]:
        """Return the decisions per second, and the seconds until solved."""
        rates = [run.decisions / run.seconds for run in found[name]]
        times = [run.seconds if run.solved else math.inf for run in found[name]]
        return statistics.median(rates), statistics.median(times)

    def change(value: float, base: float) -> str:
        is_known = variant != "baseline" and math.isfinite(value) and math.isfinite(base)
        return f"{value / base - 1:+.1%}" if is_known else "-"

    runs, (rate, seconds), base = found[variant], figures(variant), figures("baseline")
    return [
        *(TITLES[variant], f"{rate:,.0f}", change(rate, base[0])),
        f"{statistics.median(run.frames / run.seconds for run in runs):,.0f}",
        f"{statistics.median(run.cpu_seconds for run in runs):,.1f}",
        f"{seconds:,.1f}" if math.isfinite(seconds) else "not solved",
        *(change(seconds, base[1]), f"{sum(run.solved for run in runs)} of {len(runs)}"),
        f"{statistics.median(run.means[-1] for run in runs):.1f}",
    ]


if __name__ == "__main__":
    main()
