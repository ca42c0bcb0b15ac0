"""Read and write trained networks: the weights at several checkpoints of a training.

The file is an .npz without objects, which NumPy reads:

    kind, version     "goalreel network" and the version of this layout
    spec              the spec of the training
    checkpoint_steps  (checkpoints,) int64: decisions of training
    means             (checkpoints,) float64: mean return of the evaluation
    settings          JSON: what the network plays, and how it sees it
    PLACE.NAME        weights of the checkpoint at that index of `checkpoint_steps`

The settings are env, actions (their number), obs ("pixels" or "state"), obs_shape, frame_skip,
and stack (frames in an observation). Pixels have maximum (of the last two frames), warp (a name in
preprocessing.WARPS), noop (the most no-ops at the start), fire (whether FIRE starts the game) and
marks (whether frames show the action before). Frames of half the size have a background, see
preprocessing.halve, otherwise it is null. Networks of pixels have the strides of their
convolutions. `module` is null, or the user's own network "module:callable", which takes low and
high of `bounds` as -1 and 1.

The layers are convolution0, convolution1, ... and dense0, dense1, ..., each with a weight and a
bias in PyTorch's shapes, and with ReLU between them. The last one gives a value for each action.
The weights of a user's network come before dense0, with `body.` before PyTorch's names.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from goalreel.errors import OptionError, quoted
from goalreel.files import npz
from goalreel.provenance.spec import NO_SPEC, Spec, canonical, parse_spec

_KIND = "goalreel network", 1  # and its version


@dataclass(frozen=True)
class Checkpoints:
    """The content of a network file."""

    checkpoint_steps: tuple[int, ...]  # decisions of training at each checkpoint, increasing
    means: tuple[float, ...]  # each checkpoint's mean return in its evaluation
    weights: tuple[Mapping[str, np.ndarray], ...]  # of each checkpoint
    settings: Mapping
    spec: Spec = NO_SPEC  # of the training

    def choose(self, checkpoint: str | int) -> int:
        """Return the index of "best", "last" or a number of decisions. Raises OptionError."""
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


def write_checkpoints(path: str | os.PathLike, checkpoints: Checkpoints) -> None:
    """Write a network file; the same checkpoints give the same bytes."""
    arrays = npz.header(*_KIND) | {"spec": np.array(checkpoints.spec.text)}
    arrays["checkpoint_steps"] = np.array(checkpoints.checkpoint_steps, np.int64)
    arrays["means"] = np.array(checkpoints.means, np.float64)
    arrays["settings"] = np.array(canonical(dict(checkpoints.settings)))
    for place, weights in enumerate(checkpoints.weights):
        arrays |= {f"{place}.{name}": array for name, array in weights.items()}
    npz.write(path, arrays)


def read_checkpoints(path: str | os.PathLike) -> Checkpoints:
    """Read a network file. Raises GoalreelError if it is missing, damaged or of another kind."""
    arrays = npz.read(path, *_KIND)
    steps, means = (tuple(arrays[name].tolist()) for name in ("checkpoint_steps", "means"))
    weights: list[dict[str, np.ndarray]] = [{} for _ in steps]
    for key, array in arrays.items():
        place, _, name = key.partition(".")
        if name:
            weights[int(place)][name] = array
    settings = json.loads(str(arrays["settings"]))
    return Checkpoints(
        steps, means, tuple(weights), settings, parse_spec(str(arrays["spec"]), path)
    )
