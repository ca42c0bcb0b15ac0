"""Checksum files, in the format of sha256sum: for what has no place for a seal in itself.

`sha256sum -c SHA256SUMS` reads them too. The seal of .npz and .mp4 files stands in seal.
"""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from goalreel.atomic import replacing
from goalreel.errors import GoalreelError

SUMS = "SHA256SUMS"


def sha256_of(path: str | os.PathLike) -> str:
    """Return a file's sha256 in hexadecimal, read in pieces. Raises OSError."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_sums(sums: Path, files: Iterable[Path]) -> None:
    """Write the checksums of files, which stand in the folder of `sums` or below it."""
    lines = [f"{sha256_of(file)}  {file.relative_to(sums.parent).as_posix()}" for file in files]
    with replacing(sums) as temporary:
        temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def write_folder_sums(folder: Path) -> None:
    """Write SHA256SUMS of all files in a folder into it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    write_sums(folder / SUMS, files)


def read_sums(sums: Path) -> dict[Path, str]:
    """Return the files that `sums` tells of, and their sha256.

    Raises GoalreelError, naming the file, if it is no checksum file or names others' files.
    """
    found = {}
    try:
        for line in sums.read_text(encoding="utf-8").splitlines():
            digest, name = line[:64], line[66:]
            parts = Path(name).parts
            if line[64:66] != "  " or not parts or ".." in parts or Path(name).is_absolute():
                raise ValueError(f"the line {line[:80]!r}")
            int(digest, 16)
            found[sums.parent / name] = digest
    except (OSError, ValueError) as error:
        raise GoalreelError(f"{sums}: no checksums in it ({error}); delete it") from None
    return found
