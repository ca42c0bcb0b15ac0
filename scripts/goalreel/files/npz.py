"""Read and write .npz files reproducibly: equal arrays give equal bytes.

The format is that of numpy.savez_compressed without object arrays, but arrays are written one at a
time at a faster compression level, and a checksum trailer follows.
"""

import contextlib
import io
import os
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping

import numpy as np

from goalreel.errors import GoalreelError, UnusableFileError, format_bytes
from goalreel.files.atomic import replacing
from goalreel.files.checksum_trailer import LENGTH, check_trailer, write_trailer
from goalreel.files.damage import MAX_BYTES, read_member, reporting_damage

# Level 1 is 2.3 times as fast as level 6, and its files are up to 1.7 times as large.
_LEVEL = 1
_HEADER = ("kind", "version")


def write(path: str | os.PathLike, arrays: Mapping[str, np.ndarray]) -> None:
    """Write a compressed .npz file whose bytes depend only on `arrays`."""
    with writing(path) as add:
        for name, array in arrays.items():
            add(name, array)


@contextlib.contextmanager
def writing(path: str | os.PathLike) -> Iterator[Callable[[str, np.ndarray], None]]:
    """Yield a function that adds a named array to a new .npz file."""
    with replacing(path) as temporary:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:

            def add(name: str, array: np.ndarray) -> None:
                if array.nbytes >= MAX_BYTES:  # with its header it could not be read again
                    problem = f"{name} takes {format_bytes(array.nbytes)}, over 4 GiB"
                    raise GoalreelError(f"{path}: {problem}. Use a smaller shard_size.")
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)

            yield add
            archive.comment = bytes(LENGTH)
        write_trailer(temporary)


def read(
    path: str | os.PathLike, kind: str, version: int, names: Collection[str] = ()
) -> dict[str, np.ndarray]:
    """Read the named arrays of a file that goalreel wrote, checked by the zip checksums.

    Without names it reads all arrays and checks the trailer.

    Raises:
        GoalreelError: the file does not exist or cannot be read.
        UnusableFileError: it is damaged, of a different kind or version, or holds objects.
    """
    reader = Reader(path, kind, version, is_whole=not names)
    return {name: reader[name] for name in names or names_in(reader.archive)}


class Reader:
    """An open .npz file that reads arrays on demand. Raises as `read` does."""

    def __init__(self, path: str | os.PathLike, kind: str, version: int, is_whole: bool = True):
        """Open a file that goalreel wrote, and check its trailer if `is_whole`."""
        self._path = path
        with reporting_damage(path):
            self.archive = zipfile.ZipFile(path)
            actual = tuple(str(read_array(self.archive, name, 1 << 10)) for name in _HEADER)
            if actual != (kind, str(version)):
                found = f"a {actual[0]} file of version {actual[1]}"
                raise UnusableFileError(path, f"it is {found}, not {kind} version {version}")
            if is_whole:
                check_trailer(path)

    def __contains__(self, name: str) -> bool:
        return name in names_in(self.archive)

    def __getitem__(self, name: str) -> np.ndarray:
        with reporting_damage(self._path):
            return read_array(self.archive, name)


def names_in(archive: zipfile.ZipFile) -> list[str]:
    """Return the names of the arrays of an open .npz file, in writing order."""
    return [name.removesuffix(".npy") for name in archive.namelist()]


def read_array(archive: zipfile.ZipFile, name: str, most: int = MAX_BYTES) -> np.ndarray:
    """Read an array of an open file. Raises KeyError, or one of damage.BROKEN if it is corrupt."""
    # In one piece, because zipfile compares the checksum only at the end.
    content = io.BytesIO(read_member(archive, f"{name}.npy", most))
    try:
        return np.lib.format.read_array(content, allow_pickle=False)
    except MemoryError:
        raise ValueError(f"{name}: impossible size") from None


def header(kind: str, version: int) -> dict[str, np.ndarray]:
    """Return the arrays that identify a file to `read`. Write them first."""
    return {"kind": np.array(kind), "version": np.array(version)}
