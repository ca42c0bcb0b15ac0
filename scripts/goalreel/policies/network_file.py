"""Policy files of DQN: weights at several checkpoints of a training, and no code.

A .pt file as `torch.save` writes it, of plain values and tensors alone:

    kind, version     "goalreel dqn" and the version of this layout
    env, hidden       the environment's id; the hidden layers' sizes
    ages, means       (checkpoints,): the decisions of training at each checkpoint, and the mean
                      return of its evaluation
    weights           a list, for each checkpoint the state_dict of the network

beside which the archive has the member spec.json: how the file was made; it ends with a seal. It is
read with `weights_only=True`, which refuses anything that could run.
"""

import io
import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from goalreel.environments.physics import DISCRETE
from goalreel.errors import OptionError, Unusable
from goalreel.files.atomic import replacing
from goalreel.files.seal import LENGTH, check_seal, write_seal
from goalreel.policies.network import Network
from goalreel.policies.pytorch import import_torch
from goalreel.provenance.spec import NO_SPEC, Spec, parse_spec

KIND, VERSION = "goalreel dqn", 1
SPEC = "archive/spec.json"
_EPOCH = (1980, 1, 1, 0, 0, 0)


def place_of(checkpoint: str | int, ages: Sequence[int], means: Sequence[float]) -> int:
    """Return the place of a checkpoint: of the highest mean, "best", of the last one, of an age.

    Raises GoalreelError if there is no such checkpoint.
    """
    if checkpoint == "last":
        return len(ages) - 1
    if checkpoint == "best":
        return int(np.argmax(means))
    if checkpoint not in ages:
        raise OptionError(
            "policy.checkpoint",
            f"{checkpoint} is not a checkpoint of the training; allowed: "
            f"best, last, {', '.join(map(str, ages))}",
        )
    return list(ages).index(checkpoint)


@dataclass(frozen=True)
class Checkpoints:
    """What a policy file holds."""

    hidden: tuple[int, ...]  # sizes of the hidden layers
    ages: tuple[int, ...]  # decisions of training at each checkpoint
    means: tuple[float, ...]  # each checkpoint's mean return in its evaluation
    weights: tuple[dict[str, np.ndarray], ...]  # of each checkpoint, by PyTorch's names
    spec: Spec = NO_SPEC  # how it was made

    def choose(self, checkpoint: str | int) -> int:
        """Return the index of a checkpoint: "best", "last" or its decisions of training.

        Raises GoalreelError if there is no such checkpoint.
        """
        return place_of(checkpoint, self.ages, self.means)

    def network(self, place: int) -> Network:
        """Return the network of a checkpoint."""
        return Network.of(self.weights[place])


def write_checkpoints(path: str | os.PathLike, checkpoints: Checkpoints) -> None:
    """Write a policy file; the same checkpoints give the same bytes."""
    torch = import_torch("to write a policy")
    content = {
        **{"kind": KIND, "version": VERSION, "env": DISCRETE.id},
        "hidden": list(checkpoints.hidden),
        **{"ages": list(checkpoints.ages), "means": list(checkpoints.means)},
        "weights": [
            {name: torch.from_numpy(array) for name, array in weights.items()}
            for weights in checkpoints.weights
        ],
    }
    packed = io.BytesIO()  # of a path, the archive's folder would have the name
    torch.save(content, packed)
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr(zipfile.ZipInfo(SPEC, _EPOCH), checkpoints.spec.text)
        archive.comment = bytes(LENGTH)
    with replacing(path) as temporary:
        temporary.write_bytes(packed.getvalue())
        write_seal(temporary)


def read_checkpoints(path: str | os.PathLike) -> Checkpoints:
    """Read a policy file. Raises GoalreelError, naming the file, if it cannot be used."""
    torch = import_torch("to read a policy")
    path = Path(path)
    check_seal(path)
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
        with zipfile.ZipFile(path) as archive:
            spec = parse_spec(archive.read(SPEC).decode(), path)
        found = tuple(content[name] for name in ("kind", "version", "env"))
        checkpoints = Checkpoints(
            tuple(content["hidden"]),
            tuple(content["ages"]),
            tuple(content["means"]),
            tuple(
                {name: tensor.numpy() for name, tensor in one.items()} for one in content["weights"]
            ),
            spec,
        )
    except Exception as error:  # of pickle, zipfile and PyTorch, of many kinds
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Unusable(path, f"it is not a policy file of weights alone ({reason})") from None
    if found != (expected := (KIND, VERSION, DISCRETE.id)):
        raise Unusable(path, f"it is of {found}, not of {expected}")
    return checkpoints
