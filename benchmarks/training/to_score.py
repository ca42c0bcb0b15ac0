"""Minutes that trainings need for a mean return of 18 in Pong with sticky actions.

Every 100,000 decisions, if the mean of the latest 20 games is at least 10, the greedy policy plays
30 games from seeds that are the same each time. The clocks of wall time and CPU time, which is that
of all processes, stop meanwhile. A training ends with a mean of 18, or, with a last evaluation,
after --minutes of CPU time.

    goalreel                    target `train` with its preset
    AtariVectorEnv              plain_dqn.py with 8 environments of ale-py's AtariVectorEnv
    Stable-Baselines3, DQN      hyperparameters of RL Baselines3 Zoo for Atari, as for PPO
    Stable-Baselines3, PPO
    like CleanRL                plain_dqn.py with those of dqn_atari, but 100,000 decisions of
                                replay, since a million need 28 GB
    the book's baseline         the first row of book.py

Trainings run one after another, seed by seed. Each finished one becomes a row of to_score.csv and
to_score.md, and does not run again.

    python -m benchmarks.training.to_score                   up to 48 hours, in pieces if stopped
    python -m benchmarks.training.to_score --only goalreel   an hour
"""

import csv
import json
import sys
import time
from dataclasses import dataclass
from functools import partial
from statistics import mean

import numpy as np

from benchmarks.harness import TRAINING_PACKAGES, cpu_times, parser, row_process, write_table
from benchmarks.training.peers import learn_by_sb3
from benchmarks.training.pong import LATEST, goalreel

SOLVED, HOPEFUL, EVERY = 18, 10, 100_000  # mean returns; decisions
HEADER = ("program", "seed", "minutes", "CPU minutes", "decisions", "mean return")
NOTE = (
    "The time of evaluations is excluded. CPU minutes are those of all processes of a training. A "
    f"mean return below {SOLVED} is that of a training at its limit."
)


@dataclass
class Referee:
    """Ends a training that plays well, or that takes too long."""

    limit: float  # CPU minutes
    decisions: int = 0
    mean: float = float("-inf")  # of the last evaluation
    waited: float = 0.0  # of sums over processes, by `goalreel`

    def going(self, decisions: int, returns, act) -> bool:
        """Evaluate if it is time, and return whether to go on."""
        if not self.decisions:
            self._start = _clocks()
        stopped = _clocks()
        self._minutes = (stopped - self._start) / 60
        is_over = self._minutes[1] >= self.limit
        is_due = decisions // EVERY > self.decisions // EVERY and returns
        self.decisions = decisions
        if is_over or (is_due and mean(list(returns)[-LATEST:]) >= HOPEFUL):
            from benchmarks.training.plain_dqn import greedy_returns

            self.mean = float(greedy_returns(act).mean())
            self._start += _clocks() - stopped
        return not is_over and self.mean < SOLVED

    def cells(self) -> list[str]:
        """Return the cells of a row below HEADER, after program and seed."""
        minutes = (f"{value:.1f}" for value in self._minutes)
        return [*minutes, f"{self.decisions:,}", f"{self.mean:.1f}"]


def _clocks() -> np.ndarray:
    """Return the seconds of wall time, and of CPU time of this process and its children."""
    return np.array([time.perf_counter(), cpu_times()[0]])


def plain(referee: Referee, seed: int, **options) -> None:
    """Train by the plain loop."""
    from benchmarks.training.plain_dqn import Settings, train

    train(Settings(**options), referee, seed)


# The hyperparameters of Stable-Baselines3 are in dqn.yml and ppo.yml of RL Baselines3 Zoo.
PROGRAMS = {
    "goalreel": lambda referee, seed: goalreel(referee, seed=seed),
    "AtariVectorEnv": partial(plain, vector=True, envs=8, fused=True),
    "Stable-Baselines3, PPO": partial(
        *(learn_by_sb3, "PPO", 8),
        **{"n_steps": 128, "n_epochs": 4, "batch_size": 256, "vf_coef": 0.5, "ent_coef": 0.01},
        **{"learning_rate": lambda left: 2.5e-4 * left, "clip_range": lambda left: 0.1 * left},
    ),
    "Stable-Baselines3, DQN": partial(
        *(learn_by_sb3, "DQN", 1),
        **{"learning_rate": 1e-4, "batch_size": 32, "buffer_size": 100_000, "train_freq": 4},
        **{"learning_starts": 100_000, "target_update_interval": 1000, "gradient_steps": 1},
        **{"exploration_fraction": 0.1, "exploration_final_eps": 0.01},
    ),
    "like CleanRL": partial(
        plain, start=80_000, exploration=1_000_000, epsilon=0.01, target_every=250
    ),
    "the book's baseline": partial(plain, decisions=1),
}


def main(argv: list[str] | None = None) -> None:
    """Run the trainings that are missing, and write the table after each."""
    command = parser(__doc__)
    command.add_argument("--only", choices=PROGRAMS, nargs="+", default=list(PROGRAMS))
    command.add_argument("--minutes", type=float, default=240, help="CPU minutes, at most (240)")
    command.add_argument("--row", help="PROGRAM/SEED: train here, and print JSON")
    options = command.parse_args(argv)
    if options.row:
        program, seed = options.row.split("/")
        PROGRAMS[program](referee := Referee(options.minutes), int(seed))
        print(json.dumps(referee.cells()))
        return
    path, rows = options.output / "to_score", []
    if (table := path.with_suffix(".csv")).exists():
        with table.open(encoding="utf-8", newline="") as file:
            rows = [row[: len(HEADER)] for row in csv.reader(file)][1:]
    for seed in range(1, options.runs + 1):
        for program in options.only:
            if [program, str(seed)] not in [row[:2] for row in rows]:
                row, limit = f"{program}/{seed}", ("--minutes", str(options.minutes))
                module = "benchmarks.training.to_score"
                rows.append([program, str(seed), *row_process(module, row, sys.executable, *limit)])
                rows.sort(key=lambda row: (list(PROGRAMS).index(row[0]), row[1]))
                write_table(path, HEADER, rows, [NOTE], 1, TRAINING_PACKAGES)


if __name__ == "__main__":
    main()
