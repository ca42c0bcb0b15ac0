"""Policies of a training from pixels: an .npz of weights alone, that NumPy plays.

kind, version     "goalreel pixel policy" and the version of this layout
spec              how the file was made
game              GameSettings as JSON: the game and its wrappers
actions, stack    of the game; frames of an observation
frames, means     (2,): of the best and of the last weights, the frames of training, and the
                  mean return over the games that had ended last then, nan where too few had
best.NAME, last.NAME   their weights, as numpy_network.Actor takes them
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from goalreel.files import npz
from goalreel.training.pixels.numpy_network import Actor

KIND, VERSION = "goalreel pixel policy", 1
_OF = ("best", "last")


@dataclass(frozen=True)
class PixelPolicy:
    """The content of a file. Pairs are of the best and of the last weights."""

    game: str
    actions: int
    stack: int
    frames: tuple[int, int]
    means: tuple[float, float]
    best: Mapping[str, np.ndarray]
    last: Mapping[str, np.ndarray]
    spec: str

    def actor(self) -> Actor:
        """Return the network of the best weights."""
        return Actor.of(self.best)


def write_policy(path: str | os.PathLike, policy: PixelPolicy) -> None:
    """Write a policy; the same policy gives the same bytes."""
    weights = {
        f"{which}.{name}": array for which in _OF for name, array in getattr(policy, which).items()
    }
    names = ("spec", "game", "actions", "stack", "frames", "means")
    values = {name: np.array(getattr(policy, name)) for name in names}
    npz.write(path, {**npz.header(KIND, VERSION), **values, **weights})


def read_policy(path: str | os.PathLike) -> PixelPolicy:
    """Read a policy. Raises GoalreelError, naming the file, if it cannot be used."""
    arrays = npz.read(path, KIND, VERSION)
    weights = [
        {n.removeprefix(f"{which}."): a for n, a in arrays.items() if n.startswith(f"{which}.")}
        for which in _OF
    ]
    return PixelPolicy(
        *(str(arrays["game"]), int(arrays["actions"]), int(arrays["stack"])),
        *(tuple(arrays[name].tolist()) for name in ("frames", "means")),
        *(*weights, str(arrays["spec"])),
    )
