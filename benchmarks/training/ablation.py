"""Variants of deep Q-learning from the state of MountainCar-v0: a baseline and changes to it.

They follow M. Lapan, "Deep Reinforcement Learning Hands-On", 2nd edition (2020), chapter 9. With n
environments, an update covers several decisions, with a batch that is larger by the same factor.
The last row is goalreel's preset. The others change its options and, to slow it down, its code.
Each variant is trained from the seeds 1, 2, ..., one training after another, seed by seed. Run it
on an idle machine, because it reports times. The table is ablation.csv and ablation.md.

    python -m benchmarks.training.ablation    six minutes
"""

import math
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import gymnasium
from gymnasium.wrappers import RecordEpisodeStatistics, RescaleObservation

from benchmarks.harness import ENV, parser, write_table
from benchmarks.training.pong import config_of

HEADER = ("Step", "decisions/s", "Δ", "frames/s", "CPU, s", "Time, s", "ΔTime", "Solved",
          "Mean return")  # fmt: skip
ONE = {"n_envs": 1, "train_freq": 1, "batch_size": 32}
THREE = {"n_envs": 3, "train_freq": 3, "batch_size": 96}
# Options, and whether the variant has torch.no_grad() and cheap wrappers.
VARIANTS = {
    "Baseline": (ONE, True, False),
    "Without torch.no_grad()": (ONE, False, False),
    "3 environments": (THREE, True, False),
    "Wrappers + 3 environments": (THREE, True, True),
    "Wrappers + 16 environments, batch x 4": ({}, True, True),
}
SOLVED = -110.0  # the mean return of 100 episodes at which Gymnasium calls the environment solved
NOTE = (
    "Medians over {runs} seeds. A decision lasts up to 12 frames. CPU: of a training. Time: its "
    "wall clock until a greedy evaluation over 100 fixed seeds, about every 500 decisions and "
    "outside both times, has a mean return of -110 or better. A training gives up after {total:,} "
    "decisions. Mean return: of the last evaluation. The first three rows have Gymnasium's "
    "RecordEpisodeStatistics and RescaleObservation, which goalreel replaces."
)


@dataclass
class Metrics:
    """The metrics of a training, in seconds without evaluations, and its last mean return."""

    decisions: int = 0
    frames: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    mean: float = -200.0


def main(argv: list[str] | None = None) -> None:
    """Train all variants from all seeds, and write the table."""
    options = parser(__doc__, runs=5).parse_args(argv)
    found: dict[str, list[Metrics]] = {variant: [] for variant in VARIANTS}
    for seed in range(1, options.runs + 1):
        for variant in VARIANTS:
            found[variant].append(train(variant, seed))
            print(f"{variant}, seed {seed}: {found[variant][-1]}", file=sys.stderr)
    rows = [cells_of(variant, found) for variant in found]
    notes = [NOTE.format(runs=options.runs, total=config_of(ENV, {})["train"]["total_timesteps"])]
    packages = ("torch", "numpy", "gymnasium")
    write_table(options.output / "ablation", HEADER, rows, notes, packages=packages)


def wrapped(*_) -> gymnasium.Env:
    """Return the environment in usual wrappers, with the same transitions."""
    return RescaleObservation(RecordEpisodeStatistics(gymnasium.make(ENV)), -1, 1)


def train(variant: str, seed: int, **more) -> Metrics:
    """Train a variant in this process, with `more` options of the section `train`."""
    from goalreel.environments.gymnasium_env import GymnasiumEnvironment
    from goalreel.training import session, training
    from goalreel.training.dqn import Dqn

    options, no_grad, is_cheap = VARIANTS[variant]
    metrics = Metrics()

    class Timed(Dqn):
        def __init__(self, settings, network, envs, *others):
            super().__init__(settings, network, envs, *others)
            self._target.requires_grad_(requires_grad=not no_grad)
            self._step, envs.step = envs.step, self._counted

        def _counted(self, actions):
            step = self._step(actions)
            metrics.frames -= step.rewards.sum().item()  # the reward is -1 per frame
            return step

        def iterate(self, done):
            began = time.perf_counter(), time.process_time()
            games = super().iterate(done)
            metrics.seconds += time.perf_counter() - began[0]
            metrics.cpu_seconds += time.process_time() - began[1]
            metrics.decisions = done + self.decisions
            return games

    class WithGraph(Timed):
        def best_actions(self, obs):
            return Dqn.best_actions.__wrapped__(self, obs)

        def _targets(self, batch):
            return Dqn._targets.__wrapped__(self, batch).detach()

    with tempfile.TemporaryDirectory() as folder, ExitStack() as patches:
        patches.enter_context(mock.patch.object(session, "Dqn", Timed if no_grad else WithGraph))
        if not is_cheap:
            patches.enter_context(mock.patch.object(GymnasiumEnvironment, "make", wrapped))
        config = config_of(ENV, {}, seed=seed, reward_threshold=SOLVED, **options | more)
        trained = training.train(config, Path(folder, "checkpoint.pt"))
    metrics.mean = trained.record.evaluations[-1].mean("return_")
    return metrics


def cells_of(variant: str, found: dict[str, list[Metrics]]) -> list[str]:
    """Return the row of a variant: medians, and changes against the baseline."""

    def figures(name: str) -> tuple[float, float]:
        """Return the decisions per second, and the seconds until solved."""
        rates = [run.decisions / run.seconds for run in found[name]]
        times = [run.seconds if run.mean >= SOLVED else math.inf for run in found[name]]
        return statistics.median(rates), statistics.median(times)

    def change(value: float, base: float) -> str:
        is_known = variant != "Baseline" and math.isfinite(value) and math.isfinite(base)
        return f"{value / base - 1:+.1%}" if is_known else "-"

    runs, (rate, seconds), base = found[variant], figures(variant), figures("Baseline")
    return [
        *(variant, f"{rate:,.0f}", change(rate, base[0])),
        f"{statistics.median(run.frames / run.seconds for run in runs):,.0f}",
        f"{statistics.median(run.cpu_seconds for run in runs):,.1f}",
        f"{seconds:,.1f}" if math.isfinite(seconds) else "not solved",
        change(seconds, base[1]),
        f"{sum(run.mean >= SOLVED for run in runs)} of {len(runs)}",
        f"{statistics.median(run.mean for run in runs):.1f}",
    ]


if __name__ == "__main__":
    main()
