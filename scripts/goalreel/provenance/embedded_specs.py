"""Read the specs in a run's files, and compare those of inputs with the plan.

A file of a different run or shard, copied over one of this run, is intact and its checksum matches,
but its spec differs.
"""

import contextlib
import os
import time
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from goalreel.errors import UnusableFileError
from goalreel.files import npz
from goalreel.files.checksum_trailer import check_trailer
from goalreel.files.damage import reporting_damage
from goalreel.files.svg_plot import read_caption
from goalreel.mp4.reader import read_comment
from goalreel.provenance.checksums import SUMS, check_digests, check_folder, read_sums_spec
from goalreel.provenance.spec import Spec, parse_spec

OTHER = "it was made by other options, code or tools than this run's"


def read_spec(path: Path) -> Spec:
    """Return the spec of a .npz file, a video, a plot, a table's .json or a list of checksums.

    Raises GoalreelError if the file cannot be read, UnusableFileError if it carries no spec.
    """
    with reporting_damage(path, "it is truncated or corrupt: it holds no spec"):
        spec = parse_spec(_READERS[path.suffix](path), path)
    if not spec.stage:
        raise UnusableFileError(path, "it does not name the stage that made it")
    return spec


def _npz_spec(path: Path) -> str:
    with zipfile.ZipFile(path) as archive:
        return str(npz.read_array(archive, "spec"))


_READERS = {
    ".npz": _npz_spec,
    ".mp4": read_comment,
    ".svg": lambda path: read_caption(path).spec,
    ".json": lambda path: path.read_text(encoding="utf-8"),
    **dict.fromkeys(("", ".sha256"), read_sums_spec),  # SHA256SUMS has no suffix
}


def check_inputs(spec: Spec, inputs: Mapping[str, object]) -> None:
    """Check that inputs were made as planned and are intact.

    `inputs` are the program's options: a file, a folder, the files of all shards in order, or None.
    Options without a digest in the spec are skipped. The readers of .npz files check their
    checksums, and a .csv is checked by the .json next to it.

    Raises:
        UnusableFileError: an input differs from the plan. The error has all such files.
    """
    named = [n for n, paths in inputs.items() if n in spec.input_digests and paths is not None]
    if errors := [error for name in named for error in _unusable(spec, name, inputs[name])]:
        errors[0].others = tuple(errors[1:])
        raise errors[0]


def _unusable(spec: Spec, name: str, paths: Path | Iterable[Path]) -> list[UnusableFileError]:
    is_one, errors = isinstance(paths, Path), []
    for number, path in enumerate([paths] if is_one else paths):
        try:
            # Snakemake would fail a job whose output is older than its input, whose time is in the
            # future after a change of the clock.
            with contextlib.suppress(OSError):  # the reader reports it
                if path.stat().st_mtime > (now := time.time()):
                    os.utime(path, (now, now))
            whole = path
            # The digest and the spec of a table or a summary are in another .json file.
            if path.suffix == ".csv" or path.name == "summary.json":
                continue
            if path.suffix == ".mp4":
                check_trailer(path)
            elif path.suffix == ".json":
                check_digests(path)
            elif path.is_dir():
                check_folder(path)
                whole = path / SUMS
            actual = read_spec(whole)
            if actual.digest != spec.input_digests[name]:
                raise UnusableFileError(path, OTHER)
            if "first" in actual.shard or not is_one:
                planned = spec.shard if "first" in spec.shard else spec.shard_of(number)
                check_shard(path, actual, planned)
        except UnusableFileError as error:
            errors.append(error)
    return errors


def check_shard(path: Path, actual: Spec, planned: Mapping) -> None:
    """Raise UnusableFileError unless a file covers the planned episodes or reaches."""
    if actual.shard != planned:
        raise UnusableFileError(path, f"it is of {dict(actual.shard)}, not of {dict(planned)}")
