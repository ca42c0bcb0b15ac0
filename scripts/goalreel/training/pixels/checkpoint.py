"""Checkpoints of a pixel training, from which it resumes with the same buffer.

One file, an archive as `torch.save` writes it (weights and plain values alone):

    kind, version     "goalreel pixels" and the version of this layout
    identity          what must agree to resume: see `identity_of`
    learner           PixelLearner.state()
    replay            FrameReplay.state(), which is read by a memory map, never copied whole
    progress          what else the training resumes from: counters, generators, ...

It ends with a checksum. It is read with `weights_only=True`, which refuses anything that could run.
A bad one is no `UnusableFileError`, which the workflow would delete: hours of training may be in
it.
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
# Options that may change on the way: how long to train, what to tell, how to compute.
_FREE = ("total_timesteps", "train_freq", "gradient_steps", "eval_freq", "n_eval_episodes",
         "python", "autocast", "device")  # fmt: skip


def identity_of(game: Mapping, settings: PipelineSettings, actions: int, code: str = "") -> dict:
    """Return what two trainings must share for one to resume the other; plain values."""
    identity = {f"game.{name}": value for name, value in game.items()}
    identity |= {f"pixels.{n}": v for n, v in vars(settings).items() if n not in _FREE}
    layers = {"layers.network": NETWORKS[settings.network], "layers.actions": actions}
    return identity | layers | {"code": code}


def write_checkpoint(path: str | os.PathLike, identity: Mapping, learner, replay, progress) -> None:
    """Write a checkpoint over the last one, which stays until the new one is whole.

    Args:
        path: of the file.
        identity: of the training.
        learner: a PixelLearner.
        replay: a FrameReplay.
        progress: plain values and arrays in dicts, lists and tuples.
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
    """Resume a PixelLearner and a FrameReplay from a checkpoint; return its progress.

    Raises GoalreelError, naming the file, if it is truncated, of another training, or holds
    anything that could run.
    """
    import torch

    try:
        check_trailer(path)
        content = torch.load(Path(path), map_location="cpu", weights_only=True, mmap=True)
        if differences := _differences(content, _KIND):
            raise GoalreelError(f"it is of another version: {differences}")
        if differences := _differences(content["identity"], identity):
            raise GoalreelError(f"it is of another training: {differences}")
        learner.load(content["learner"])
        replay.load(content["replay"])
        return _changed(content["progress"], torch.Tensor, torch.Tensor.numpy)
    except Exception as error:  # of pickle, zipfile and PyTorch, of many kinds
        problem = error.problem if isinstance(error, UnusableFileError) else str(error)
        problem = problem.partition("\n")[0] or type(error).__name__
        raise GoalreelError(
            f"{path}: cannot be resumed from: {problem}; delete it to begin the training again"
        ) from None


def _differences(actual: Mapping, expected: Mapping) -> str:
    """Return the expected keys whose values differ, with both values."""
    return ", ".join(
        f"{key} is {actual.get(key)!r}, not {value!r}"
        for key, value in sorted(expected.items())
        if actual.get(key) != value
    )


def _changed(value, kind: type, change):
    """Return nested dicts, lists and tuples in which each `kind` is changed."""
    if isinstance(value, kind):
        return change(value)
    if isinstance(value, Mapping):
        return {name: _changed(inner, kind, change) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_changed(inner, kind, change) for inner in value)
    return value
