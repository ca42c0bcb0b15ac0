"""Write and read checkpoints of a training from pixels, with its replay buffer.

A checkpoint is an archive of `torch.save` with weights and plain values only:

    kind, version     "goalreel pixels" and the version of this layout
    identity          the settings that must agree to resume: see `identity_of`
    learner           PixelLearner.state()
    replay            FrameReplay.state(), which is memory-mapped and never copied as a whole
    progress          counters, random generators and other state

The file ends with a checksum. `weights_only=True` makes `torch.load` reject code. A damaged
checkpoint raises no `UnusableFileError`, because the workflow would delete hours of training.
"""

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from goalreel.errors import GoalreelError, UnusableFileError
from goalreel.files.atomic import replacing
from goalreel.files.checksum_trailer import LENGTH, check_trailer, write_trailer
from goalreel.policies.pixel_network import NETWORKS
from goalreel.training.pixels.settings import PipelineSettings

_KIND = {"kind": "goalreel pixels", "version": 4}
# Options that may change when a training resumes.
_FREE = ("total_timesteps", "train_freq", "gradient_steps", "eval_freq", "n_eval_episodes",
         "python", "autocast", "device")  # fmt: skip


def identity_of(game: Mapping, settings: PipelineSettings, actions: int, code: str = "") -> dict:
    """Return the settings that must agree to resume a training, as plain values."""
    identity = {f"game.{name}": value for name, value in game.items()}
    identity |= {f"pixels.{n}": v for n, v in vars(settings).items() if n not in _FREE}
    layers = {"layers.network": NETWORKS[settings.network], "layers.actions": actions}
    return identity | layers | {"code": code}


def write_checkpoint(path: str | os.PathLike, identity: Mapping, learner, replay, progress) -> None:
    """Replace a checkpoint of a PixelLearner and a FrameReplay atomically.

    `progress` has plain values and arrays in dicts, lists and tuples.
    """
    import torch

    content = _KIND | {"identity": dict(identity), "learner": learner.state()}
    content |= {"replay": replay.state(), "progress": _changed(progress, np.ndarray, torch.tensor)}
    with replacing(path) as temporary:
        torch.save(content, temporary)
        with zipfile.ZipFile(temporary, "a") as archive:
            archive.comment = bytes(LENGTH)
        write_trailer(temporary)


def resume(path: str | os.PathLike, identity: Mapping, learner, replay) -> dict:
    """Restore a PixelLearner and a FrameReplay from a checkpoint, and return its progress.

    Raises GoalreelError if the file is damaged, contains code, or has another identity.
    """
    import torch

    fix = "Delete it to start the training again."
    try:
        check_trailer(path)
        content = torch.load(Path(path), map_location="cpu", weights_only=True, mmap=True)
        if differences := _differences(content, _KIND):
            raise GoalreelError(f"it is from another version of goalreel: {differences}")
        if differences := _differences(content["identity"], identity):
            fix = "Restore these settings, or delete it to start the training again."
            raise GoalreelError(differences)
        learner.load(content["learner"])
        replay.load(content["replay"])
        return _changed(content["progress"], torch.Tensor, torch.Tensor.numpy)
    except Exception as error:  # pickle, zipfile and PyTorch raise many kinds
        problem = error.problem if isinstance(error, UnusableFileError) else str(error)
        problem = problem.partition("\n")[0] or type(error).__name__
        raise GoalreelError(f"{path}: Cannot resume from it. {fix}\n  {problem}") from None


def _differences(actual: Mapping, expected: Mapping) -> str:
    """Return the keys whose values differ, with both values."""
    other = {key: value for key, value in sorted(expected.items()) if actual.get(key) != value}
    return ", ".join(f"{key} is {actual.get(key)!r}, not {value!r}" for key, value in other.items())


def _changed(value, kind: type, change):
    """Return nested dicts, lists and tuples with `change` applied to each `kind`."""
    if isinstance(value, kind):
        return change(value)
    if isinstance(value, Mapping):
        return {name: _changed(inner, kind, change) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_changed(inner, kind, change) for inner in value)
    return value
