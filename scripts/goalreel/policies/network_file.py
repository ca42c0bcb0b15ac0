"""Read and write trained networks: the weights at several checkpoints of a training.

The file is an .npz without objects, which NumPy reads:

    kind, version     the kind of network, and the version of this layout
    spec              the spec of the training
    ages, means       (checkpoints,): decisions of training, and mean return of the evaluation
    PLACE.NAME        weights of the checkpoint at that index of `ages`, for Network.of or Actor.of

A network that sees pixels also has:

    game              the fields of training.games.settings.GameSettings, as JSON
    actions, stack    the number of actions, and of frames in an observation
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from goalreel.errors import OptionError, quoted
from goalreel.files import npz
from goalreel.provenance.spec import NO_SPEC, Spec, canonical, parse_spec


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of a network that sees the state of Mountain Car."""

    KIND = "goalreel dqn", 2  # and its version

    checkpoint_steps: tuple[int, ...]  # decisions of training at each checkpoint, increasing
    means: tuple[float, ...]  # each checkpoint's mean return in its evaluation
    weights: tuple[Mapping[str, np.ndarray], ...]  # of each checkpoint
    settings: Mapping = None
    spec: Spec = NO_SPEC  # of the training

    def choose(self, checkpoint: str | int) -> int:
        """Return the index of "best", "last" or a number of decisions of training.

        Raises GoalreelError if there is no such checkpoint.
        """
        if checkpoint == "last":
            return len(self.checkpoint_steps) - 1
        if checkpoint == "best":
            return int(np.argmax(self.means))
        if checkpoint not in self.checkpoint_steps:
            problem = f"{quoted(checkpoint)} is not a checkpoint of this policy"
            known = ", ".join(map(str, self.checkpoint_steps))
            fix = f"Use best, last or a number of decisions.\n  {known}"
            raise OptionError("policy.checkpoint", f"{problem}. {fix}")
        return self.checkpoint_steps.index(checkpoint)


@dataclass(frozen=True, kw_only=True)
class PixelCheckpoints(Checkpoints):
    """The checkpoints of a network that sees a game's pixels."""

    KIND = "goalreel pixel policy", 2

    game: Mapping  # fields of GameSettings
    actions: int  # the game's number of actions
    stack: int  # frames in an observation


_PIXEL_FIELDS = "game", "actions", "stack"
Kind = TypeVar("Kind", bound=Checkpoints)


def write_checkpoints(path: str | os.PathLike, checkpoints: Checkpoints) -> None:
    """Write a policy file; the same checkpoints give the same bytes."""
    arrays = {"spec": np.array(checkpoints.spec.text)}
    if isinstance(checkpoints, PixelCheckpoints):
        arrays["game"] = np.array(canonical(dict(checkpoints.game)))
        arrays |= {name: np.array(getattr(checkpoints, name)) for name in _PIXEL_FIELDS[1:]}
    arrays["ages"] = np.array(checkpoints.checkpoint_steps, np.int64)
    arrays["means"] = np.array(checkpoints.means, np.float64)
    for place, weights in enumerate(checkpoints.weights):
        arrays |= {f"{place}.{name}": array for name, array in weights.items()}
    npz.write(path, {**npz.header(*checkpoints.KIND), **arrays})


def read_checkpoints(path: str | os.PathLike, kind: type[Kind] = Checkpoints) -> Kind:
    """Read a policy file. Raises GoalreelError if it is missing, damaged or of another kind."""
    arrays = npz.read(path, *kind.KIND)
    checkpoint_steps, means = (tuple(arrays[name].tolist()) for name in ("ages", "means"))
    weights: list[dict[str, np.ndarray]] = [{} for _ in checkpoint_steps]
    for key, array in arrays.items():
        place, _, name = key.partition(".")
        if name:
            weights[int(place)][name] = array
    pixel_fields = {name: json.loads(str(arrays[name])) for name in _PIXEL_FIELDS if name in arrays}
    spec = parse_spec(str(arrays["spec"]), path)
    return kind(checkpoint_steps, means, tuple(weights), spec, **pixel_fields)
