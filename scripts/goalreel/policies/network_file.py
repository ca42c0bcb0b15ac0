"""Policy files of DQN: weights at several ages of a training, as PyTorch keeps them, and no code.

A .pt file as `torch.save` writes it, of plain values and tensors alone:

    kind, version     "goalreel dqn" and the version of this layout
    env, hidden       the environment's id; the hidden layers' sizes
    ages, means       (ages,): the frames of training at each checkpoint, and the mean return of its
                      evaluation
    weights           a list, for each age the state_dict of learner.network

beside which the archive has the member spec.json: how the file was made; it ends with a seal. It is
read with `weights_only=True`, which refuses anything that could run.
"""

import io
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from goalreel.environments.physics import DISCRETE
from goalreel.errors import GoalreelError, Unusable
from goalreel.files.atomic import replacing
from goalreel.files.seal import LENGTH, check_seal, write_seal
from goalreel.policies.network import Network
from goalreel.policies.pytorch import import_torch

KIND, VERSION = "goalreel dqn", 1
SPEC = "archive/spec.json"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_INPUTS, _OUTPUTS = 2, 3


@dataclass(frozen=True)
class Checkpoints:
    """What a policy file holds; see the module's docstring."""

    hidden: tuple[int, ...]
    ages: tuple[int, ...]
    means: tuple[float, ...]
    weights: tuple[dict[str, np.ndarray], ...]
    spec: str = "{}"

    def choose(self, checkpoint: str | int) -> int:
        """Return the place of a checkpoint: "best", "last" or its age.

        Raises GoalreelError for an age that is not there.
        """
        if checkpoint == "last":
            return len(self.ages) - 1
        if checkpoint == "best":
            return int(np.argmax(self.means))
        if checkpoint not in self.ages:
            raise GoalreelError(
                f"policy.checkpoint: {checkpoint} is not a checkpoint of the training; allowed: "
                f"best, last, {', '.join(map(str, self.ages))}"
            )
        return self.ages.index(checkpoint)

    def network(self, place: int) -> Network:
        """Return the network of a checkpoint."""
        return Network.of(self.weights[place])


def write_checkpoints(path: str | os.PathLike, kept: Checkpoints) -> None:
    """Write a policy file; the same checkpoints give the same bytes."""
    torch = import_torch("to write a policy")
    content = {
        **{"kind": KIND, "version": VERSION, "env": DISCRETE.id},
        "hidden": list(kept.hidden),
        **{"ages": list(kept.ages), "means": list(kept.means)},
        "weights": [
            {name: torch.from_numpy(array) for name, array in weights.items()}
            for weights in kept.weights
        ],
    }
    packed = io.BytesIO()  # of a path, the archive's folder would have the name
    torch.save(content, packed)
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr(zipfile.ZipInfo(SPEC, _EPOCH), kept.spec)
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
            spec = archive.read(SPEC).decode()
        found = tuple(content[name] for name in ("kind", "version", "env"))
        weights = tuple(
            {name: tensor.numpy() for name, tensor in one.items()} for one in content["weights"]
        )
        kept = Checkpoints(
            tuple(content["hidden"]),
            tuple(content["ages"]),
            tuple(content["means"]),
            weights,
            spec,
        )
        _check(kept, found)
    except GoalreelError as error:
        raise Unusable(path, str(error)) from None
    except Exception as error:  # of pickle, zipfile and PyTorch, of many kinds
        told = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Unusable(path, f"it is not a policy file of weights alone ({told})") from None
    return kept


def _check(kept: Checkpoints, found: tuple) -> None:
    """Raise GoalreelError unless a file's values fit together."""
    if found != (wanted := (KIND, VERSION, DISCRETE.id)):
        raise GoalreelError(f"it is of {found}, not of {wanted}")
    lengths = {len(kept.ages), len(kept.means), len(kept.weights)}
    if len(lengths) != 1 or 0 in lengths:
        raise GoalreelError("its checkpoints do not fit together")
    for place in range(len(kept.ages)):
        network = kept.network(place)
        network.check(_INPUTS, _OUTPUTS)
        sizes = tuple(len(bias) for _, bias in network.layers[:-1])
        if sizes != kept.hidden:
            raise GoalreelError(f"its hidden layers are of {sizes}, not of {kept.hidden}")
