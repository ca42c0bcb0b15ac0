"""Checkpoints of a pixel training, from which it resumes with the same buffer.

One file, an archive as `torch.save` writes it (weights and plain values alone):

    kind, version     "goalreel pixels" and the version of this layout
    identity          what must agree to resume: see `identity_of`
    learner           PixelLearner.state()
    progress          what else the training resumes from: counters, generators, ...

beside which the archive has a member replay/NAME.npy for each array of the replay buffer, not
compressed, so that it is written from memory and read by a memory map, never copied whole. It ends
with a checksum. It is read with `weights_only=True`, which refuses anything that could run. A bad
one is no `UnusableFileError`, which the workflow would delete: hours of training may be in it.
"""

import io
import os
import zipfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np

from goalreel.errors import GoalreelError, UnusableFileError
from goalreel.files.atomic import replacing
from goalreel.files.checksum_trailer import LENGTH, check_trailer, write_trailer
from goalreel.policies.pixel_network import NETWORKS
from goalreel.training.pixels.settings import PipelineSettings

KIND, VERSION = "goalreel pixels", 2
_REPLAY = "archive/replay/"  # PyTorch refuses members outside of the folder
_EPOCH = (1980, 1, 1, 0, 0, 0)
_LOCAL_HEADER = 30  # bytes; then the member's name and its extra field (APPNOTE.TXT, 4.3.7)
# Options that may change on the way: how long to train, what to tell, how to compute.
_FREE = ("decisions", "replay_ratio", "backpressure", "python", "evaluate_every", "games")
_FREE += ("autocast", "compile", "device")


def identity_of(game: Mapping, settings: PipelineSettings, actions: int, code: str = "") -> dict:
    """Return what two trainings must share for one to resume the other; plain values."""
    identity = {f"game.{name}": value for name, value in game.items()}
    identity |= {f"pixels.{n}": v for n, v in asdict(settings).items() if n not in _FREE}
    layers = {"layers.network": NETWORKS[settings.network], "layers.actions": actions}
    return identity | layers | {"code": code}


def write_checkpoint(
    path: str | os.PathLike,
    identity: Mapping,
    learner: Mapping,
    replay: Mapping[str, np.ndarray],
    progress: Mapping,
) -> None:
    """Write a checkpoint over the last one, which stays until the new one is whole.

    `learner` is PixelLearner.state(), `replay` FrameReplay.arrays(), `progress` plain values and
    arrays in dicts, lists and tuples.
    """
    import torch

    content = {"kind": KIND, "version": VERSION, "identity": dict(identity)}
    content |= {"learner": dict(learner), "progress": changed(progress, np.ndarray, torch.tensor)}
    packed = io.BytesIO()  # of a path, the archive's folder would have the name
    torch.save(content, packed)
    with replacing(path) as temporary:
        temporary.write_bytes(packed.getbuffer())
        with zipfile.ZipFile(temporary, "a") as archive:
            for name, array in replay.items():
                member = zipfile.ZipInfo(f"{_REPLAY}{name}.npy", _EPOCH)
                with archive.open(member, "w", force_zip64=True) as stream:
                    np.lib.format.write_array(stream, array, (1, 0), allow_pickle=False)
            archive.comment = bytes(LENGTH)
        write_trailer(temporary)


def read_checkpoint(
    path: str | os.PathLike, identity: Mapping
) -> tuple[dict, dict[str, np.ndarray], dict]:
    """Return the learner, the replay (memory maps) and the progress of a checkpoint.

    Raises GoalreelError, naming the file, if it is missing, truncated, of another training, or
    holds anything that could run.
    """
    import torch

    path = Path(path)
    if not path.exists():
        raise GoalreelError(f"{path}: no such checkpoint to resume from")
    try:
        check_trailer(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
        kind = content["kind"], content["version"]
        if kind != (KIND, VERSION):
            raise GoalreelError(f"it is of {kind}, not of {(KIND, VERSION)}")
        _check_identity(content["identity"], identity)
        with zipfile.ZipFile(path) as archive:
            members = [i for i in archive.infolist() if i.filename.startswith(_REPLAY)]
        names = [member.filename.removeprefix(_REPLAY).removesuffix(".npy") for member in members]
        replay = {n: _mapped(path, member) for n, member in zip(names, members, strict=True)}
        progress = changed(content["progress"], torch.Tensor, lambda tensor: tensor.numpy())
        return content["learner"], replay, progress
    except UnusableFileError as error:
        raise _refused(path, error.problem) from None
    except GoalreelError as error:
        raise _refused(path, str(error)) from None
    except Exception as error:  # of pickle, zipfile, NumPy and PyTorch, of many kinds
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise _refused(path, f"it is no checkpoint of weights alone ({reason})") from None


def resume(path: str | os.PathLike, identity: Mapping, learner, replay) -> dict:
    """Resume a PixelLearner and a FrameReplay from a checkpoint; return its progress.

    Raises GoalreelError as `read_checkpoint` does, and if its content is not of their shapes.
    """
    state, arrays, progress = read_checkpoint(path, identity)
    try:
        learner.load(state)
        replay.restore(arrays)
    except GoalreelError as error:
        raise _refused(Path(path), str(error)) from None
    return progress


def _refused(path: Path, error: str) -> GoalreelError:
    return GoalreelError(
        f"{path}: cannot be resumed from: {error}; delete it to begin the training again"
    )


def _check_identity(actual, expected: Mapping) -> None:
    """Raise GoalreelError, naming all keys that differ."""
    actual = dict(actual)
    missing = object()
    differences = [
        f"{key} is {actual[key]!r}, not {expected[key]!r}"
        if key in actual and key in expected
        else f"{key} is only in {'it' if key in actual else 'this training'}"
        for key in sorted({*actual, *expected})
        if actual.get(key, missing) != expected.get(key, missing)
    ]
    if differences:
        raise GoalreelError(f"it is of another training: {', '.join(differences)}")


def changed(value, kind: type, change):
    """Return nested dicts, lists and tuples in which each `kind` is changed."""
    if isinstance(value, kind):
        return change(value)
    if isinstance(value, Mapping):
        return {name: changed(inner, kind, change) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(changed(inner, kind, change) for inner in value)
    return value


def _mapped(path: Path, member: zipfile.ZipInfo) -> np.ndarray:
    """Return an array of a file by a read-only map. Raises ValueError if it holds objects."""
    if member.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{member.filename} is compressed")
    with path.open("rb") as stream:
        stream.seek(member.header_offset)
        header = stream.read(_LOCAL_HEADER)
        name, extra = (int.from_bytes(header[at : at + 2], "little") for at in (26, 28))
        stream.seek(name + extra, os.SEEK_CUR)
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError(f"{member.filename} has an unknown format")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
        if dtype.hasobject:
            raise ValueError(f"{member.filename} holds objects")
        order = "F" if fortran else "C"
        return np.memmap(path, dtype, "r", stream.tell(), shape, order)
