"""Files of trained networks: weights at several checkpoints of a training, which NumPy reads.

An .npz without objects:

    kind, version     of the learner, and the version of this layout
    spec              how the file was made
    ages, means       (checkpoints,): decisions of training, and the mean return of an evaluation
    PLACE.NAME        weights of the checkpoint at that place of `ages`, as Network.of or Actor.of
                      takes them

and, of a network that sees pixels:

    game              as JSON, the game and its wrappers: training.games.settings.GameSettings
    actions, stack    of the game; frames of an observation
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from goalreel.errors import OptionError
from goalreel.files import npz
from goalreel.provenance.spec import NO_SPEC, Spec, canonical, parse_spec


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of a network that sees the state of Mountain Car."""

    KIND = "goalreel dqn", 2  # and its version

    checkpoint_steps: tuple[int, ...]  # decisions of training at each checkpoint, increasing
    means: tuple[float, ...]  # each checkpoint's mean return in its evaluation
    weights: tuple[Mapping[str, np.ndarray], ...]  # of each checkpoint
    spec: Spec = NO_SPEC  # how it was made

    def choose(self, checkpoint: str | int) -> int:
        """Return the index of a checkpoint: "best", "last" or its decisions of training.

        Raises GoalreelError if there is no such checkpoint.
        """
        if checkpoint == "last":
            return len(self.checkpoint_steps) - 1
        if checkpoint == "best":
            return int(np.argmax(self.means))
        if checkpoint not in self.checkpoint_steps:
            raise OptionError(
                "policy.checkpoint",
                f"{checkpoint} is not a checkpoint of the training; allowed: "
                f"best, last, {', '.join(map(str, self.checkpoint_steps))}",
            )
        return self.checkpoint_steps.index(checkpoint)


@dataclass(frozen=True, kw_only=True)
class PixelCheckpoints(Checkpoints):
    """The checkpoints of a network that sees a game's pixels."""

    KIND = "goalreel pixel policy", 2

    game: Mapping  # plain values: game, frame_skip, maximum, noop, fire, episodic_life, ...
    actions: int
    stack: int


_OF_PIXELS = "game", "actions", "stack"
Kind = TypeVar("Kind", bound=Checkpoints)


def write_checkpoints(path: str | os.PathLike, checkpoints: Checkpoints) -> None:
    """Write a policy file; the same checkpoints give the same bytes."""
    arrays = {"spec": np.array(checkpoints.spec.text)}
    if isinstance(checkpoints, PixelCheckpoints):
        arrays["game"] = np.array(canonical(dict(checkpoints.game)))
        arrays |= {name: np.array(getattr(checkpoints, name)) for name in _OF_PIXELS[1:]}
    arrays["ages"] = np.array(checkpoints.checkpoint_steps, np.int64)
    arrays["means"] = np.array(checkpoints.means, np.float64)
    for place, weights in enumerate(checkpoints.weights):
        arrays |= {f"{place}.{name}": array for name, array in weights.items()}
    npz.write(path, {**npz.header(*checkpoints.KIND), **arrays})


def read_checkpoints(path: str | os.PathLike, kind: type[Kind] = Checkpoints) -> Kind:
    """Read a policy file.

    Raises:
        GoalreelError: there is no such file, or it is not of this kind or cannot be used.
    """
    arrays = npz.read(path, *kind.KIND)
    checkpoint_steps, means = (tuple(arrays[name].tolist()) for name in ("ages", "means"))
    weights: list[dict[str, np.ndarray]] = [{} for _ in checkpoint_steps]
    for key, array in arrays.items():
        place, _, name = key.partition(".")
        if name:
            weights[int(place)][name] = array
    of_pixels = {name: json.loads(str(arrays[name])) for name in _OF_PIXELS if name in arrays}
    spec = parse_spec(str(arrays["spec"]), path)
    return kind(checkpoint_steps, means, tuple(weights), spec, **of_pixels)
