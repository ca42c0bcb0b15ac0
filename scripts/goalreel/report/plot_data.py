"""What the plots show: counts and samples of a run, gathered in bounded memory.

Samples are evenly spread and drawn without chance: the same run gives the same plots.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from goalreel.report.page_rows import outcomes
from goalreel.report.reach_rate import pieces
from goalreel.simulation.trajectories import Trajectories, read_trajectories

POINTS = 2000
CURVES = 120
RETURNS = 20_000
ACTIONS = 100_000
MOST_NUMBERS = 8  # of a state that is plotted
_SHARDS = 24


@dataclass(frozen=True)
class Steps:
    """The steps of the film's episodes; where reaches are filmed, of those that reached."""

    counts: np.ndarray  # (most steps + 1,) int64: episodes of each number of steps
    # (points,) float64 and int64, of at most POINTS episodes; empty where the table has none.
    positions: np.ndarray  # initial
    steps: np.ndarray

    @property
    def episodes(self) -> int:
        """Return the number of episodes counted."""
        return int(self.counts.sum())

    def least(self) -> int:
        """Return the fewest steps of any episode."""
        return int(np.flatnonzero(self.counts)[0])

    def most(self) -> int:
        """Return the most steps of any episode."""
        return int(np.flatnonzero(self.counts)[-1])

    def median(self) -> float:
        """Return the median number of steps."""
        below = np.cumsum(self.counts)
        middle = [(self.episodes - 1) // 2, self.episodes // 2]
        return float(np.searchsorted(below, middle, side="right").mean())


@dataclass(frozen=True)
class Returns:
    """The returns of the film's episodes, in film order: of all, or of RETURNS at most."""

    episodes: int  # of the film
    numbers: np.ndarray  # (returns,) int64, the episodes' places in the film
    values: np.ndarray  # (returns,) float64
    outcomes: np.ndarray  # (returns,) int64: 0 terminated, 1 truncated, 2 neither
    least: float  # of all
    most: float
    mean: float
    reward: (
        float | None
    )  # of every step, where that is one number, and so the steps tell the return


@dataclass(frozen=True)
class Sample:
    """What evenly chosen episodes of the film did."""

    episodes: int  # that the film has; where reaches are filmed, those that reached
    states: list[np.ndarray]  # (steps + 1, width) float64 each, of at most CURVES episodes
    returns: np.ndarray  # (episodes,) float64, theirs
    actions: np.ndarray  # (actions, numbers), of the same shards and at most about ACTIONS


class _Even:
    """Evenly chosen rows of a table that comes in pieces: every n-th, `most` at most."""

    def __init__(self, most: int, columns: int):
        self._most, self._stride, self.seen = most, 1, 0
        self.rows = np.zeros((0, columns))

    def add(self, rows: np.ndarray) -> None:
        self.rows = np.concatenate([self.rows, rows[-self.seen % self._stride :: self._stride]])
        self.seen += len(rows)
        while len(self.rows) > self._most:
            self.rows, self._stride = self.rows[::2], 2 * self._stride


def read_steps(episodes_csv: str | os.PathLike, unit: str) -> Steps:
    """Count the steps of the episodes in a table. Raises GoalreelError as `pieces`.

    unit: "reach", where only reaches count and tell their initial positions, or "episode".
    """
    counts, sample = np.zeros(0, np.int64), _Even(POINTS, 2)
    columns = ("steps", "initial_position", "reached") if unit == "reach" else ("steps",)
    for piece in pieces(episodes_csv, columns):
        if unit == "reach":
            piece = piece[piece["reached"]]
            sample.add(piece[["initial_position", "steps"]].dropna().to_numpy(np.float64))
        more = np.bincount(piece["steps"].to_numpy(), minlength=len(counts))
        more[: len(counts)] += counts
        counts = more
    return Steps(counts, sample.rows[:, 0], sample.rows[:, 1].astype(np.int64))


def read_returns(episodes_csv: str | os.PathLike) -> Returns:
    """Return the returns of the episodes in a table. Raises GoalreelError as `pieces`."""
    sample, total, reward, constant = _Even(RETURNS, 3), 0.0, None, True
    least, most = np.inf, -np.inf
    for piece in pieces(episodes_csv, ("steps", "return", "terminated", "truncated")):
        values, steps = piece["return"].to_numpy(), piece["steps"].to_numpy()
        places = np.arange(sample.seen, sample.seen + len(values))
        ended = outcomes(piece, "episode")
        sample.add(np.stack([places, values, ended], axis=1).astype(np.float64))
        least, most = min(least, values.min()), max(most, values.max())
        total += values.sum()
        reward = values[0] / steps[0] if reward is None and steps[0] else reward
        constant = constant and reward is not None and np.allclose(values, reward * steps)
    numbers, values, ended = sample.rows.T
    return Returns(
        sample.seen,
        numbers.astype(np.int64),
        values,
        ended.astype(np.int64),
        float(least),
        float(most),
        float(total / sample.seen),
        float(reward) if constant and reward else None,
    )


def read_sample(trajectories: Sequence[Path], unit: str, episodes: int) -> Sample:
    """Return what evenly chosen episodes did; of many shards only some files are read.

    Args:
        trajectories: the files of all shards.
        unit: "reach", where only reaches count, or "episode".
        episodes: how many of them the film has.

    Raises:
        GoalreelError: as `read_trajectories`.
    """
    chosen = _evenly(np.arange(len(trajectories)), _SHARDS)
    parts = [_of_shard(read_trajectories(trajectories[s]), len(chosen), unit) for s in chosen]
    states = [curve for curves, _, _ in parts for curve in curves]
    returns, actions = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
    return Sample(episodes, states, returns, actions)


def _of_shard(
    shard: Trajectories, shards: int, unit: str
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Return the states and returns of some of a shard's episodes, and some of its actions."""
    rows = shard.episodes
    counted = np.flatnonzero(rows.reached) if unit == "reach" else np.arange(len(shard))
    some = _evenly(counted, max(CURVES // shards, 1))
    states = [shard.episode(index)[0].copy() for index in some]
    actions = shard.actions.reshape(len(shard.actions), -1)
    return states, rows.return_[some], _evenly(actions, max(ACTIONS // shards, 1))


def _evenly(values: np.ndarray, most: int) -> np.ndarray:
    """Return at most `most` of the values, evenly spread."""
    if len(values) <= most:
        return values
    return values[np.arange(most) * len(values) // most]
