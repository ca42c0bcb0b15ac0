"""The members of an .npz file, held to what their file can hold before any memory is taken.

Deflate packs at most 1032 bytes into one (each pair of its bits can stand for 258 bytes). So a file
of n bytes holds less than 1032 n, however it was made, and a member that claims more is forged: 10
kB that tell of 100 GB are refused by their header. Nothing that NumPy or goalreel writes can meet
this limit. Members are read only as far as they claim, and an array's shape must be that of the
bytes that are there. What the arrays mean, and whose fault a bad file is, stands with the callers.
"""

import contextlib
import io
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from tokenize import TokenError

import numpy as np

# Source: zlib's technical details, "Maximum Compression Factor": 1032:1, approached from below.
MOST_PACKED = 1032
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# Whatever a file that is no .npz, or is truncated, corrupt or forged makes zipfile, zlib and
# NumPy's parser of headers raise.
BROKEN = (
    *(zipfile.BadZipFile, zlib.error, struct.error, NotImplementedError, RuntimeError, EOFError),
    *(ValueError, TypeError, OverflowError, SyntaxError, TokenError, LookupError),
)


def told(error: Exception) -> str:
    """Return what one of `BROKEN` says; of a corrupt file it may repeat kilobytes."""
    return str(error)[:200]


class Archive:
    """An open .npz file: the names of its arrays, and the arrays themselves."""

    def __init__(self, archive: zipfile.ZipFile, size: int) -> None:
        """Take an open zip file and its number of bytes."""
        self._archive, self._size = archive, size
        self._members = {i.filename.removesuffix(".npy"): i for i in archive.infolist()}

    @property
    def names(self) -> set[str]:
        """The names of all arrays."""
        return set(self._members)

    def read(self, names: Iterable[str]) -> dict[str, np.ndarray]:
        """Return arrays.

        Raises KeyError where there is no such array, and any of `BROKEN` if one claims more than
        the file can hold, is packed otherwise than by deflate, encrypted or corrupt, or holds
        objects.
        """
        infos = {name: self._members[name] for name in names}
        _check(list(infos.values()), self._size)
        return {name: _array(_content(self._archive, info)) for name, info in infos.items()}


@contextlib.contextmanager
def opened(path: str | os.PathLike) -> Iterator[Archive]:
    """Yield the archive of an .npz file. Raises OSError or any of `BROKEN` if it is none."""
    with Path(path).open("rb") as stream, zipfile.ZipFile(stream) as archive:
        yield Archive(archive, os.fstat(stream.fileno()).st_size)


def _check(infos: list[zipfile.ZipInfo], size: int) -> None:
    """Raise ValueError if members claim more than a file of `size` bytes can hold."""
    packed = sum(info.compress_size for info in infos)
    if packed > size:  # also of members that share their bytes
        raise ValueError(f"its members claim {packed} bytes of a file of {size}")
    for info in infos:
        if info.compress_type not in _METHODS:
            raise ValueError(f"{info.filename} is packed by a method that is not deflate")
        if info.file_size > MOST_PACKED * info.compress_size:
            raise ValueError(
                f"{info.filename} claims {info.file_size} bytes, which {info.compress_size} "
                f"cannot hold"
            )


def _content(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Return a member's bytes, and no more than it claims; its checksum is compared at their end.

    `ZipFile.read` unpacks up to 2 GiB before it looks at the claim.
    """
    with archive.open(info) as member:
        content = member.read(info.file_size)
        if len(content) != info.file_size or member.read(1):
            raise ValueError(f"{info.filename} does not hold the {info.file_size} bytes it claims")
    return content


def _array(content: bytes) -> np.ndarray:
    stream = io.BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):  # of structured dtypes and huge headers alone
        raise ValueError("an array of an unknown format")
    try:
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    except MemoryError:  # Python's parser, of brackets nested too deep
        raise ValueError("an array whose header cannot be read") from None
    if dtype.hasobject:
        raise ValueError("objects, which are not read")
    count = 1
    for length in shape:
        count *= length
    sound = dtype.itemsize and all(length >= 0 for length in shape)
    if not sound or count * dtype.itemsize != len(content) - stream.tell():
        raise ValueError(f"an array of {dtype} and shape {shape}, which its bytes are not")
    # One copy: read_array takes a file that is in memory in small pieces, each copied twice.
    order = "F" if fortran else "C"
    return np.ndarray(shape, dtype, content, stream.tell(), order=order).copy(order)
