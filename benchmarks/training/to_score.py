"""Minutes that trainings need for a mean return of 18 in Pong with sticky actions.

Every 25,000 decisions, if the mean of the latest 20 games is at least 10, the greedy policy plays
30 games from seeds that are the same each time. The clocks of wall time and CPU time, which is that
of all processes, stop meanwhile. A training ends with a mean of 18, or after --minutes.

    goalreel                    target `train` with its preset
    AtariVectorEnv              plain_dqn.py with 8 environments of ale-py's AtariVectorEnv
    Stable-Baselines3, DQN      hyperparameters of RL Baselines3 Zoo for Atari, as for PPO
    Stable-Baselines3, PPO
    like CleanRL                plain_dqn.py with those of dqn_atari, but 100,000 decisions of
                                replay, since a million need 28 GB
    the book's baseline         the first row of book.py

Trainings run one after another, seed by seed. Each finished one is a row of to_score_trainings.csv,
and does not run again. The table is to_score.csv and to_score.md.

    python -m benchmarks.training.to_score                   up to 48 hours, in pieces if stopped
    python -m benchmarks.training.to_score --only goalreel   an hour
"""

import csv
import json
import math
import sys
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import mean, median

import numpy as np

from benchmarks.harness import TRAINING_PACKAGES, parser, row_process, write_table
from benchmarks.training.peers import learn_by_sb3
from benchmarks.training.rows import LATEST, cpu_seconds, goalreel

SOLVED, HOPEFUL, EVERY = 18, 10, 25_000  # mean returns; decisions
HEADER = ("program", "minutes", "median", "CPU minutes", "decisions", "solved")
_COUNTS = "cpu_minutes", "decisions"


@dataclass
class Referee:
    """Ends a training that plays well, or that takes too long."""

    limit: float  # minutes
    decisions: int = 0
    minutes: float = 0.0
    cpu_minutes: float = 0.0
    mean: float | None = None  # of the last evaluation
    waited: float = 0.0

    def __post_init__(self) -> None:
        self._clocks = _clocks()

    def going(self, decisions: int, returns, act) -> bool:
        """Evaluate if it is time, and return whether to go on."""
        self.minutes, self.cpu_minutes = ((_clocks() - self._clocks) / 60).tolist()
        if decisions // EVERY > self.decisions // EVERY and returns:
            from benchmarks.training.plain_dqn import greedy_returns

            stopped = _clocks()
            if mean(list(returns)[-LATEST:]) >= HOPEFUL:
                self.mean = float(greedy_returns(act).mean())
            self._clocks += _clocks() - stopped
        self.decisions = decisions
        return self.minutes < self.limit and (self.mean is None or self.mean < SOLVED)


def _clocks() -> np.ndarray:
    """Return the seconds of wall time, and of CPU time of this process and its children."""
    return np.array([time.perf_counter(), cpu_seconds()[0]])


def plain(referee: Referee, seed: int, **options) -> None:
    """Train by the plain loop."""
    from benchmarks.training.plain_dqn import Settings, train

    train(Settings(**options), referee, seed)


def sb3_dqn(referee: Referee, seed: int) -> None:
    """Train by Stable-Baselines3's DQN: dqn.yml of RL Baselines3 Zoo."""
    learn_by_sb3(
        *("DQN", 1, referee, seed),
        **{"learning_rate": 1e-4, "batch_size": 32, "buffer_size": 100_000, "train_freq": 4},
        **{"learning_starts": 100_000, "target_update_interval": 1000, "gradient_steps": 1},
        **{"exploration_fraction": 0.1, "exploration_final_eps": 0.01},
    )


def sb3_ppo(referee: Referee, seed: int) -> None:
    """Train by Stable-Baselines3's PPO: ppo.yml of RL Baselines3 Zoo."""
    learn_by_sb3(
        *("PPO", 8, referee, seed),
        **{"n_steps": 128, "n_epochs": 4, "batch_size": 256, "vf_coef": 0.5, "ent_coef": 0.01},
        **{"learning_rate": lambda left: 2.5e-4 * left, "clip_range": lambda left: 0.1 * left},
    )


PROGRAMS = {
    "goalreel": lambda referee, seed: goalreel(referee, seed=seed),
    "AtariVectorEnv": partial(plain, vector=True, envs=8, fused=True),
    "Stable-Baselines3, PPO": sb3_ppo,
    "Stable-Baselines3, DQN": sb3_dqn,
    "like CleanRL": partial(
        plain, start=80_000, exploration=1_000_000, epsilon=0.01, target_every=250
    ),
    "the book's baseline": partial(plain, decisions=1),
}


def main(argv: list[str] | None = None) -> None:
    """Run the trainings that are missing, and write the table after each."""
    command = parser(__doc__)
    command.add_argument("--only", choices=PROGRAMS, nargs="+", default=list(PROGRAMS))
    command.add_argument("--minutes", type=float, default=180, help="limit of a training (180)")
    command.add_argument("--row", help="PROGRAM/SEED: train here, and print JSON")
    options = command.parse_args(argv)
    if options.row:
        program, seed = options.row.split("/")
        PROGRAMS[program](referee := Referee(options.minutes), int(seed))
        print(json.dumps(asdict(referee)))
        return
    path = options.output / "to_score_trainings.csv"
    for seed in range(1, options.runs + 1):
        for program in options.only:
            if (program, str(seed)) not in {(row["program"], row["seed"]) for row in read(path)}:
                row, limit = f"{program}/{seed}", ("--minutes", str(options.minutes))
                found = row_process("benchmarks.training.to_score", row, sys.executable, *limit)
                add(path, {"program": program, "seed": seed} | found)
                write(options.output / "to_score", read(path))


def read(path: Path) -> list[dict[str, str]]:
    """Return the finished trainings."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def add(path: Path, row: dict) -> None:
    """Append a finished training."""
    is_new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, row, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def write(path: Path, trainings: list[dict[str, str]]) -> None:
    """Write the table of all finished trainings."""
    rows = []
    for program in PROGRAMS:
        own = [row for row in trainings if row["program"] == program]
        times = [
            float(row["minutes"]) if float(row["mean"] or "-inf") >= SOLVED else math.inf
            for row in own
        ]
        if own:
            middle = [median([float(row[name]) for row in own]) for name in _COUNTS]
            solved = f"{sum(map(math.isfinite, times))} of {len(own)}"
            shown = ", ".join(map(_minutes, times)), _minutes(median(times))
            rows.append([program, *shown, f"{middle[0]:.0f}", f"{middle[1]:,.0f}", solved])
    notes = [
        "Minutes of each training in the order of its seeds, without evaluations; -: not solved. "
        "CPU minutes and decisions: medians, also of unsolved trainings, which end at a limit.",
    ]
    write_table(path, HEADER, rows, notes, packages=TRAINING_PACKAGES)


def _minutes(value: float) -> str:
    return f"{value:.0f}" if math.isfinite(value) else "-"


if __name__ == "__main__":
    main()
