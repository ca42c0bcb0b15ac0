"""Policies of a training from pixels: an .npz of weights alone, that NumPy plays.

kind, version     "goalreel pixel policy" and the version of this layout
spec              how the file was made
game              as JSON, the game and what its wrappers do: training.games.settings.GameSettings
actions, stack    of the game; frames of an observation
ages, means       (checkpoints,): decisions of training, and the mean return of a greedy evaluation
PLACE.NAME        weights of the checkpoint at that place of ages, as Actor.of takes them
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from goalreel.files import npz
from goalreel.policies.network_file import place_of
from goalreel.policies.pixel_network import Actor
from goalreel.provenance.spec import NO_SPEC, Spec, canonical, parse_spec

KIND, VERSION = "goalreel pixel policy", 2


@dataclass(frozen=True)
class PixelCheckpoints:
    """What a policy file holds."""

    game: Mapping  # plain values: game, frame_skip, maximum, noop, fire, episodic_life, ...
    actions: int
    stack: int
    ages: tuple[int, ...]  # decisions of training at each checkpoint, increasing
    means: tuple[float, ...]  # each checkpoint's mean return in its evaluation
    weights: tuple[Mapping[str, np.ndarray], ...]  # of each checkpoint
    spec: Spec = NO_SPEC  # how it was made

    def choose(self, checkpoint: str | int) -> int:
        """Return the index of a checkpoint: "best", "last" or its decisions of training.

        Raises GoalreelError if there is no such checkpoint.
        """
        return place_of(checkpoint, self.ages, self.means)

    def actor(self, place: int) -> Actor:
        """Return the network of a checkpoint."""
        return Actor.of(self.weights[place])


def write_pixel_checkpoints(path: str | os.PathLike, checkpoints: PixelCheckpoints) -> None:
    """Write a policy file; the same checkpoints give the same bytes."""
    arrays = {
        "spec": np.array(checkpoints.spec.text),
        "game": np.array(canonical(dict(checkpoints.game))),
        **{name: np.array(getattr(checkpoints, name)) for name in ("actions", "stack")},
        "ages": np.array(checkpoints.ages, np.int64),
        "means": np.array(checkpoints.means, np.float64),
    }
    for place, weights in enumerate(checkpoints.weights):
        arrays |= {f"{place}.{name}": array for name, array in weights.items()}
    npz.write(path, {**npz.header(KIND, VERSION), **arrays})


def read_pixel_checkpoints(path: str | os.PathLike) -> PixelCheckpoints:
    """Read a policy file. Raises GoalreelError, naming the file, if it cannot be used."""
    arrays = npz.read(path, KIND, VERSION)
    ages = tuple(arrays["ages"].tolist())
    weights: list[dict[str, np.ndarray]] = [{} for _ in ages]
    for key, array in arrays.items():
        place, _, name = key.partition(".")
        if name:
            weights[int(place)][name] = array
    return PixelCheckpoints(
        *(json.loads(str(arrays["game"])), int(arrays["actions"]), int(arrays["stack"])),
        *(ages, tuple(arrays["means"].tolist()), tuple(weights)),
        parse_spec(str(arrays["spec"]), path),
    )
