"""What the plots show: counts and samples of a run, gathered in bounded memory.

Samples are evenly spread and drawn without chance: the same run gives the same plots.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from goalreel.environments.registry import describe
from goalreel.film.shards import shard_paths
from goalreel.report.reach_rate import pieces
from goalreel.simulation.trajectories import read_trajectories

POINTS = 2000
CURVES = 120
_SHARDS = 24


@dataclass(frozen=True)
class Steps:
    """The steps to the goal of the film's reaches."""

    counts: np.ndarray  # (most steps + 1,) int64: reaches of each number of steps
    # (points,) float64 and int64, of at most POINTS reaches; empty where the table has none.
    positions: np.ndarray  # initial
    steps: np.ndarray

    @property
    def reaches(self) -> int:
        """Return the number of reaches counted."""
        return int(self.counts.sum())

    def least(self) -> int:
        """Return the fewest steps of any reach."""
        return int(np.flatnonzero(self.counts)[0])

    def most(self) -> int:
        """Return the most steps of any reach."""
        return int(np.flatnonzero(self.counts)[-1])

    def median(self) -> float:
        """Return the median number of steps."""
        below = np.cumsum(self.counts)
        middle = [(self.reaches - 1) // 2, self.reaches // 2]
        return float(np.searchsorted(below, middle, side="right").mean())


@dataclass(frozen=True)
class Portrait:
    """Trajectories of reaches in the phase plane."""

    curves: list[np.ndarray]  # (steps + 1, 2) float64 each, position and velocity
    goal: float | None  # its position, None where states are not a position and a velocity


def read_steps(episodes_csv: str | os.PathLike) -> Steps:
    """Count the steps of the reaches in a table of episodes. Raises GoalreelError as `pieces`."""
    counts, seen, stride = np.zeros(0, np.int64), 0, 1
    sample = np.zeros((0, 2))
    for piece in pieces(episodes_csv, ("steps", "initial_position")):
        piece = piece[piece["reached"]]
        more = np.bincount(piece["steps"].to_numpy(), minlength=len(counts))
        more[: len(counts)] += counts
        counts = more
        points = piece[["initial_position", "steps"]].dropna().to_numpy(np.float64)
        chosen = points[-seen % stride :: stride]
        seen += len(points)
        sample = np.concatenate([sample, chosen])
        while len(sample) > POINTS:
            sample, stride = sample[::2], 2 * stride
    return Steps(counts, sample[:, 0], sample[:, 1].astype(np.int64))


def read_portrait(trajectories: Path, shards: int, env: str) -> Portrait:
    """Return at most CURVES reaches' trajectories; of many shards only some files are read.

    trajectories: the file of shard 0. Raises GoalreelError as `read_trajectories`.
    """
    if not describe(env).is_mountain_car:
        return Portrait([], None)
    paths = shard_paths(trajectories, shards)
    chosen = _evenly(np.arange(shards), _SHARDS)
    curves = []
    for path in (paths[shard] for shard in chosen):
        shard = read_trajectories(path)
        reached = np.flatnonzero(shard.episodes.reached)
        each = CURVES // len(chosen)
        curves += [shard.episode(index)[0].copy() for index in _evenly(reached, each)]
    return Portrait(curves, describe(env).goal_position)


def _evenly(values: np.ndarray, most: int) -> np.ndarray:
    """Return at most `most` of the values, evenly spread."""
    if len(values) <= most:
        return values
    return values[np.arange(most) * len(values) // most]
