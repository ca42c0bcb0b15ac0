"""The specs that a run's files carry, and whether a stage is given what was planned for it.

A file of another run, or of another shard, may have been copied over one of this run: it is whole,
and its checksum fits.
"""

import contextlib
import os
import time
import zipfile
from collections import namedtuple
from collections.abc import Iterable, Mapping
from pathlib import Path

from goalreel.errors import UnusableFileError
from goalreel.files import npz
from goalreel.files.checksum_trailer import check_trailer
from goalreel.files.damage import reporting_damage
from goalreel.files.svg_plot import read_caption
from goalreel.mp4.reader import read_comment
from goalreel.provenance.checksums import check_digests, check_folder
from goalreel.provenance.spec import Spec, parse_spec

OTHER = "it was made by other options, code or tools than this run's"
# A tool that shaped results; stages: those that used it, by commas.
Tool = namedtuple("Tool", "name version stages")


def read_spec(path: Path) -> Spec:
    """Return the spec of a trajectory file, cache, atlas, policy, video, plot or table's .json.

    Raises:
        GoalreelError: there is no such file, or it cannot be read.
        UnusableFileError: it carries no spec.
    """
    with reporting_damage(path, "it is truncated or corrupt: it holds no spec"):
        spec = parse_spec(_READERS[path.suffix](path), path)
    if not spec.stage:
        raise UnusableFileError(path, "its spec names no stage")
    return spec


def _npz_spec(path: Path) -> str:
    with zipfile.ZipFile(path) as archive:
        return str(npz.read_array(archive, "spec"))


_READERS = {
    ".npz": _npz_spec,
    ".mp4": read_comment,
    ".svg": lambda path: read_caption(path).spec,
    ".json": lambda path: path.read_text(encoding="utf-8"),
}


def tools_of(specs: Iterable[Spec]) -> list[Tool]:
    """Return every version of every tool that specs name, with its stages."""
    stages: dict[tuple[str, str], dict[str, None]] = {}
    for spec in specs:
        for tool in spec.tools.items():
            stages.setdefault(tool, {})[spec.stage] = None
    return [Tool(*tool, ", ".join(users)) for tool, users in sorted(stages.items())]


def check_inputs(spec: Spec, inputs: Mapping[str, object]) -> None:
    """Check that inputs were made as planned, and that they are as written; .npz readers do that.

    Args:
        spec: the stage's; one written by hand names no `input_digests`, and nothing is checked.
        inputs: by their names in `input_digests`, a program's options: a file, a folder, the files
            of all shards in order, or None for none. A table's .json stands for the .csv beside it.
            Other options are passed over.

    Raises:
        UnusableFileError: one of them was made otherwise; it names all such files.
    """
    errors: list[UnusableFileError] = []
    for name, paths in inputs.items():
        if name in spec.input_digests and paths is not None:
            errors += _unusable(spec, name, paths)
    if errors:
        errors[0].others = tuple(errors[1:])
        raise errors[0]


def _unusable(spec: Spec, name: str, paths: Path | Iterable[Path]) -> list[UnusableFileError]:
    """Return what is wrong with the files of an input."""
    is_one, errors = isinstance(paths, Path), []
    for number, path in enumerate([paths] if is_one else paths):
        try:
            _date_back(path)
            whole = path
            if path.suffix == ".csv":  # its digest and its spec are in the table's .json
                continue
            if path.suffix == ".mp4":
                check_trailer(path)
            elif path.suffix == ".json":
                check_digests(path)
            elif path.is_dir():
                whole = check_folder(path)[0]
            actual = read_spec(whole)
            if actual.digest != spec.input_digests[name]:
                raise UnusableFileError(path, OTHER)
            if "first" in actual.shard or not is_one:
                check_shard(
                    path, actual, spec.shard if "first" in spec.shard else spec.shard_of(number)
                )
        except UnusableFileError as error:
            errors.append(error)
    return errors


def check_shard(path: Path, actual: Spec, planned: Mapping) -> None:
    """Raise UnusableFileError unless a file covers the episodes, or reaches, that are planned."""
    if actual.shard != planned:
        raise UnusableFileError(path, f"it is of {dict(actual.shard)}, not of {dict(planned)}")


def _date_back(path: Path) -> None:
    """Give a file of the future, which a clock that was put back leaves, the time of today.

    Snakemake fails a job whose output is older than its input.
    """
    with contextlib.suppress(OSError):  # who reads it says what is wrong
        if path.stat().st_mtime > (now := time.time()):
            os.utime(path, (now, now))
