"""Save and resume a training.

The file is an archive of `torch.save` with weights and plain values only:

    kind, version     "goalreel training" and the version of this layout
    identity          the settings that must agree to resume
    state             of network, optimizer and record
    parts             of each process: its algorithm and environments

The file ends with a checksum. `weights_only=True` makes `torch.load` reject code. A damaged file
raises no `UnusableFileError`, because the workflow would delete hours of training.
"""

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

import torch

from goalreel.errors import GoalreelError, UnusableFileError
from goalreel.files.atomic import replacing
from goalreel.files.checksum_trailer import LENGTH, check_trailer, write_trailer
from goalreel.provenance.spec import canonical

_KIND = {"kind": "goalreel training", "version": 1}
# Options that may change when a training resumes.
FREE = ("eval_freq", "n_eval_episodes", "checkpoints", "reward_threshold", "attempts")


def write_checkpoint(path: Path, identity: Mapping, state: Mapping, parts: list[Mapping]) -> None:
    """Replace the file atomically."""
    known = json.loads(canonical(dict(identity)))  # PyTorch reads no classes of a spec
    content = _KIND | {"identity": known, "state": dict(state), "parts": parts}
    with replacing(path) as temporary:
        try:
            torch.save(content, temporary)
        except RuntimeError as error:  # of its writer in C++, such as on a full disk
            raise OSError(str(error).partition("\n")[0]) from error
        with zipfile.ZipFile(temporary, "a") as archive:
            archive.comment = bytes(LENGTH)
        write_trailer(temporary)


def read_checkpoint(path: Path, identity: Mapping) -> tuple[dict, list]:
    """Return a training's state and its processes' parts. Raises GoalreelError if unusable."""
    fix = "Delete it to start the training again."
    try:
        check_trailer(path)
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        if differences := _differences(content, _KIND):
            raise GoalreelError(f"it is from another version of goalreel: {differences}")
        if differences := _differences(content["identity"], identity):
            fix = "Restore these settings, or delete it to start the training again."
            raise GoalreelError(differences)
        return content["state"], content["parts"]
    except Exception as error:  # pickle, zipfile and PyTorch raise many kinds
        problem = error.problem if isinstance(error, UnusableFileError) else str(error)
        problem = problem.partition("\n")[0] or type(error).__name__
        raise GoalreelError(f"{path}: Cannot resume from it. {fix}\n  {problem}") from None


def _differences(actual: Mapping, expected: Mapping) -> str:
    """Return the keys whose values differ, with both values."""
    other = {key: value for key, value in sorted(expected.items()) if actual.get(key) != value}
    return ", ".join(f"{key} is {actual.get(key)!r}, not {value!r}" for key, value in other.items())
