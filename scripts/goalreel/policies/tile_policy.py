"""Learned policies: the weights at each checkpoint of a training, their greedy choice, their file.

The file is a compressed .npz without objects:

    kind, version     "policy" and the version of this layout
    spec              JSON: how the file was made
    ages              (ages,) int64: after how many training episodes each checkpoint was taken
    weights           (ages, actions, tiles) float64: an action's value is the sum of its weights
                      over the observation's tiles (tiles.features)
    log_*             (episodes,): episode (from 1), seed, steps, return, reached of every training
                      episode, up to the last checkpoint

How weights are learned stands in sarsa.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from goalreel.environments.physics import MountainCar
from goalreel.files import npz
from goalreel.policies.tile_coding import TILES, features

VERSION = 1
ACTIONS = 3
_KIND = "policy"
_LOG = "log_"


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
    """What a policy file holds; the arrays are told in the module's docstring."""

    ages: np.ndarray
    weights: np.ndarray
    log: TrainingLog
    spec: str


def action_values(weights: np.ndarray, tiles: np.ndarray) -> np.ndarray:
    """Return each action's value: (actions, ...) float64.

    weights: (actions, TILES) float64; tiles: (..., tilings) as from tiles.features. A cumulative
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
    arrays = {"spec": np.array(policies.spec), "ages": policies.ages, "weights": policies.weights}
    log = {_LOG + name: column for name, column in policies.log.columns().items()}
    npz.write(path, npz.header(_KIND, VERSION) | arrays | log)


def read_policies(path: str | os.PathLike) -> LearnedPolicies:
    """Read a policy file. Raises GoalreelError, naming the file, if it cannot be used."""
    arrays = npz.read(path, _KIND, VERSION, _ARRAYS)
    ages, weights = arrays["ages"], arrays["weights"]
    log = TrainingLog(*(arrays[_LOG + field.name.rstrip("_")] for field in fields(TrainingLog)))
    npz.check(
        path,
        ages.ndim == 1
        and len(ages) > 0
        and ages[0] > 0
        and bool((np.diff(ages) > 0).all())
        and weights.shape == (len(ages), ACTIONS, TILES)
        and bool(np.isfinite(weights).all())
        and log.episode.shape == (ages[-1],)
        and np.array_equal(log.episode, np.arange(1, ages[-1] + 1))
        and all(column.shape == log.episode.shape for column in log.columns().values()),
        "its arrays do not fit together",
    )
    return LearnedPolicies(ages, weights, log, str(arrays["spec"]))


_ARRAYS = {
    **{"spec": "U", "ages": "i", "weights": "f"},
    **{_LOG + name: "i" for name in ("episode", "seed", "steps")},
    **{_LOG + "return": "f", _LOG + "reached": "b"},
}
