"""Whether a stage is given what the workflow planned for it, by the specs in the files.

A file of another run, or of another shard, may have been copied over one of this run: it is whole,
and its checksum fits.
"""

import contextlib
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from goalreel.errors import UnusableFileError
from goalreel.files.checksum_trailer import check_trailer
from goalreel.provenance.checksums import check_digests, check_folder
from goalreel.provenance.embedded_specs import read_spec
from goalreel.provenance.spec import Spec

OTHER = "it was made by other options, code or tools than this run's"


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
