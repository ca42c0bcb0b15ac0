"""Policies on tiles: which tiles an observation lies in, each action's value there, their file.

Tile coding: R. S. Sutton and A. G. Barto, "Reinforcement Learning: An Introduction" (2nd edition),
9.5.4: grids are shifted by odd multiples, 1 and 3, of a fraction of a tile, which spreads the tiles
around a point evenly. Every tile has an index of its own, without hashing.

The file is a compressed .npz without objects:

    kind, version     "policy" and the version of this layout
    spec              JSON: how the file was made
    ages              (checkpoints,) int64: after how many training episodes each was taken
    weights           (checkpoints, actions, tiles) float64: an action's value is the sum of its
                      weights over the observation's tiles
    log_*             (episodes,): episode (from 1), seed, steps, return, reached of every training
                      episode, up to the last checkpoint
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from goalreel.environments.physics import MountainCar
from goalreel.environments.registry import MAX_POSITION, MAX_SPEED, MIN_POSITION
from goalreel.files import npz
from goalreel.provenance.spec import Spec, parse_spec

VERSION = 1
ACTIONS = 3
_KIND = "policy"
_LOG = "log_"

TILINGS = 8
_ACROSS = 8  # tiles of a grid over the whole range of a variable
_ALONG = _ACROSS + 1  # a shifted grid needs one more to cover the range
TILES = TILINGS * _ALONG * _ALONG

_LOW = np.array([MIN_POSITION, -MAX_SPEED])
# Places are counted in eighths of a tile: all shifts are whole numbers of them, and exact.
_UNITS = _ACROSS * TILINGS
# Division by it, unlike a product with its inverse, brings zero velocity to a whole number exactly.
_UNIT = (np.array([MAX_POSITION, MAX_SPEED]) - _LOW) / _UNITS
_SHIFTS = np.arange(TILINGS)[:, None] * np.array([1, 3]) % TILINGS  # (tilings, 2)
_FIRST = np.arange(TILINGS) * (_ALONG * _ALONG)  # (tilings,) the first tile of each grid


@dataclass(frozen=True)
class TrainingLog:
    """One row per training episode: (episodes,) arrays, int64, float64 and bool."""

    episode: np.ndarray
    seed: np.ndarray
    steps: np.ndarray
    return_: np.ndarray
    reached: np.ndarray

    def columns(self) -> dict[str, np.ndarray]:
        """Return the columns by their names in the table."""
        return {field.name.rstrip("_"): getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True)
class LearnedPolicies:
    """What a policy file holds."""

    ages: np.ndarray
    weights: np.ndarray
    log: TrainingLog
    spec: Spec


def features(observations: np.ndarray) -> np.ndarray:
    """Return the tiles of each observation: (n, tilings) int64 in [0, TILES), one of each grid.

    observations: (n, 2) float32, position and velocity. The bounds, and what rounding to float32
    brings beyond them, count as the places next to them.
    """
    places = np.floor((observations.astype(np.float64) - _LOW) / _UNIT).astype(np.int64)
    places = np.clip(places, 0, _UNITS - 1)
    cells = (places[:, None, :] + _SHIFTS) // TILINGS  # (n, tilings, 2)
    return _FIRST + cells[..., 0] * _ALONG + cells[..., 1]


def action_values(weights: np.ndarray, tiles: np.ndarray) -> np.ndarray:
    """Return each action's value: (actions, ...) float64.

    weights: (actions, TILES) float64; tiles: (..., tilings) as from `features`. A cumulative
    sum adds from the first tiling to the last, however many observations there are; `sum` may
    regroup, and the last bit decides between actions.
    """
    return weights[:, tiles].cumsum(axis=-1)[..., -1]


def best_action(values: np.ndarray) -> np.ndarray:
    """Return the action of the greatest value, (...) int8; of equal ones the first.

    values: (actions, ...) float64.
    """
    return values.argmax(axis=0).astype(np.int8)


def greedy(weights: np.ndarray) -> Callable[[np.ndarray, MountainCar], np.ndarray]:
    """Return a policy's rule, (observations (lanes, 2), environment) -> actions (lanes,) int8.

    weights: (actions, TILES) float64, of MountainCar-v0. The same observation gives the same
    action, alone or in company.
    """

    def rule(observations: np.ndarray, environment: MountainCar) -> np.ndarray:
        return best_action(action_values(weights, features(observations)))

    return rule


def write_policies(path: str | os.PathLike, policies: LearnedPolicies) -> None:
    """Write a policy file; the same policies give the same bytes."""
    arrays = {
        "spec": np.array(policies.spec.text),
        "ages": policies.ages,
        "weights": policies.weights,
    }
    log = {_LOG + name: column for name, column in policies.log.columns().items()}
    npz.write(path, npz.header(_KIND, VERSION) | arrays | log)


def read_policies(path: str | os.PathLike) -> LearnedPolicies:
    """Read a policy file. Raises GoalreelError, naming the file, if it cannot be used."""
    arrays = npz.read(path, _KIND, VERSION)
    log = TrainingLog(*(arrays[_LOG + field.name.rstrip("_")] for field in fields(TrainingLog)))
    return LearnedPolicies(
        arrays["ages"], arrays["weights"], log, parse_spec(str(arrays["spec"]), path)
    )
