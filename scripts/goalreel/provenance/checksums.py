"""Checksum files in the format of sha256sum, for files that cannot hold their own checksum.

`sha256sum -c SHA256SUMS` reads them. It skips the first two lines: the list's own checksum, and the
spec of the files.
"""

import hashlib
import json
from collections.abc import Collection, Iterable
from pathlib import Path

from goalreel.errors import GoalreelError, UnusableFileError
from goalreel.files.atomic import replacing
from goalreel.files.damage import reporting_damage
from goalreel.provenance.spec import NO_SPEC, Spec, canonical, json_digest

SUMS = "SHA256SUMS"
RUN_FILE = "config.yaml"  # in the results: all options of the run
STAMP = ".snakemake_timestamp"  # Snakemake's file in each folder that is an output
_SPEC, _SUM = "# spec: ", "# sha256 of the lines below: "
_ITSELF = "this file without this line"
_AS_IT_IS = "surrogateescape"  # for file names that are not UTF-8


def sha256_of(path: Path) -> str:
    """Return a file's sha256 in hexadecimal, read in pieces. Raises OSError."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def checksum_error(path: Path, digest: str) -> str:
    """Return the problem of a file, "" if its sha256 is `digest`. Raises GoalreelError."""
    if not path.is_file():
        return "it is missing"
    with reporting_damage(path):
        return "" if sha256_of(path) == digest else "its sha256 is not the one in the list"


def write_sums(sums: Path, files: Collection[Path], spec: Spec = NO_SPEC) -> None:
    """Write the spec and the checksums of files, which must be in the folder of `sums`."""
    lines = [f"{sha256_of(file)}  {file.relative_to(sums.parent).as_posix()}" for file in files]
    with replacing(sums) as temporary:
        text = "".join(f"{line}\n" for line in (f"{_SPEC}{canonical(spec.value)}", *lines))
        temporary.write_bytes(with_checksum(text.encode("utf-8", _AS_IT_IS)))


def with_checksum(lines: bytes) -> bytes:
    """Return lines below a comment with their sha256."""
    return f"{_SUM}{hashlib.sha256(lines).hexdigest()}\n".encode() + lines


def begins_with_checksum(path: Path) -> bool:
    """Return whether a file begins as `with_checksum` writes it, also if it is cut off there."""
    with path.open("rb") as stream:
        return _SUM.encode().startswith(stream.read(len(_SUM)))


def checked_lines(path: Path) -> bytes:
    """Return the lines of a file below their checksum.

    Raises GoalreelError if the file cannot be read, UnusableFileError if the lines differ.
    """
    with reporting_damage(path):
        content = path.read_bytes()
        _, _, lines = content.partition(b"\n")
        if content != with_checksum(lines):
            raise ValueError("its lines differ from its first one")
    return lines


def write_folder_sums(folder: Path, spec: Spec = NO_SPEC) -> None:
    """Write SHA256SUMS of all files in a folder into it."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != SUMS)
    write_sums(folder / SUMS, sorted(files), spec)


def read_sums_spec(sums: Path) -> str:
    """Return the JSON of the spec in a checksum file. Raises ValueError if it has none."""
    line, _, _ = checked_lines(sums).partition(b"\n")
    if not line.startswith(_SPEC.encode()):
        raise ValueError("it holds no spec")
    return line.decode("ascii").removeprefix(_SPEC)


def with_digests(spec: Spec, files: Iterable[Path]) -> str:
    """Return the JSON of a spec with the sha256 of tables, which cannot hold it, and its own."""
    value = {**spec.value, "sha256": {file.name: sha256_of(file) for file in files}}
    value["sha256"][_ITSELF] = json_digest(value)
    return canonical(value) + "\n"


def read_digests(path: Path) -> dict[Path, str]:
    """Return the sha256 of each file that a .json lists. Raises UnusableFileError for damage."""
    with reporting_damage(path, "it is corrupt or holds no checksums"):
        text = path.read_bytes().decode("ascii")
        value = json.loads(text)
        digests = dict(value["sha256"])
        itself = value["sha256"].pop(_ITSELF)
        if json_digest(value) != itself or text != canonical(value | {"sha256": digests}) + "\n":
            raise ValueError("its sha256 differs from the one that it states")
    return {path.parent / name: digest for name, digest in value["sha256"].items()}


def results_files(folders: Iterable[str]) -> dict[str, str]:
    """Return the sha256 of each run's tables and first frames. Raises GoalreelError without one."""
    found = {}
    for folder in folders:
        paths = [Path(folder, "tables.json")]
        paths += [Path(folder, name, "00000.npz") for name in ("frames", "trajectories")]
        if missing := next((path.name for path in paths if not path.is_file()), None):
            again = f"Make it again: snakemake all stills --configfile {folder}/config.yaml"
            fix = again if Path(folder, "config.yaml").is_file() else "Name the folder of a run."
            raise GoalreelError(f"compare: {folder!r} holds no finished run (no {missing}). {fix}")
        content = b"".join(path.read_bytes() for path in paths)
        found[folder] = hashlib.sha256(content).hexdigest()
    return found


def read_sums(sums: Path) -> dict[Path, str]:
    """Return the sha256 of each file that `sums` lists. Raises UnusableFileError for damage."""
    found = {}
    lines = checked_lines(sums).decode("utf-8", _AS_IT_IS).split("\n")[:-1]
    with reporting_damage(sums):
        for line in (line for line in lines if not line.startswith(_SPEC)):
            digest, name = line[:64], line[66:]
            if ".." in Path(name).parts or Path(name).is_absolute():
                raise ValueError(f"the line {line[:80]!r} names another folder's file")
            found[sums.parent / name] = digest
    return found


def read_list(path: Path) -> dict[Path, str]:
    """Return the files of a list of either kind, with their sha256."""
    return (read_digests if path.suffix == ".json" else read_sums)(path)


def check_digests(path: Path) -> None:
    """Raise UnusableFileError if a .json list or a file in it is damaged."""
    for file, digest in read_digests(path).items():
        if error := checksum_error(file, digest):
            raise UnusableFileError(path, f"problem with {file.name}: {error}")


def check_folder(folder: Path) -> list[Path]:
    """Return the checked files of an output folder. Raises UnusableFileError with its path."""
    try:
        digests = read_sums(folder / SUMS)
    except UnusableFileError as error:  # its own files are not known
        raise UnusableFileError(folder, f"{SUMS}: {error.problem}", ()) from None
    for path, digest in digests.items():
        if error := checksum_error(path, digest):
            own = [*digests, folder / SUMS, folder / STAMP]
            raise UnusableFileError(folder, f"problem with {path.name}: {error}", own)
    return list(digests)


def other_files(folder: Path) -> list[Path]:
    """Return the files in such a folder that its list does not name."""
    own = {*read_sums(folder / SUMS), folder / SUMS, folder / STAMP}
    return sorted(path for path in folder.rglob("*") if not path.is_dir() and path not in own)
