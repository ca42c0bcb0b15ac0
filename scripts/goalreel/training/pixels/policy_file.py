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
from goalreel.training.games.warp import SIDE
from goalreel.training.pixels.numpy_network import Actor

KIND, VERSION = "goalreel pixel policy", 1
_OF = ("best", "last")
_STACKED = 100  # frames at most: no file may need more memory than its network takes


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
    try:
        weights = [
            {n.removeprefix(f"{which}."): a for n, a in arrays.items() if n.startswith(f"{which}.")}
            for which in _OF
        ]
        pairs = [tuple(arrays[name].tolist()) for name in ("frames", "means")]
        policy = PixelPolicy(
            *(str(arrays["game"]), int(arrays["actions"]), int(arrays["stack"])),
            *(*pairs, *weights, str(arrays["spec"])),
        )
        npz.check(path, 1 <= policy.stack <= _STACKED, f"a stack of {policy.stack} frames")
        stacks = np.zeros((1, policy.stack, SIDE, SIDE), np.uint8)
        for which in _OF:
            shape = Actor.of(getattr(policy, which)).values(stacks).shape
            npz.check(path, shape == (1, policy.actions), f"its {which} values are {shape}")
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        npz.check(path, False, f"its arrays do not fit together ({error})")
    return policy
