"""Reading and writing of .npz files: same arrays, same bytes, and a clear error for a bad file.

NumPy's own savez stamps each member with the time; this writer does not, and ends the file with a
seal. What the arrays mean is told by the modules that call this one (trajectories, atlas,
frame_cache).
"""

import io
import os
import zipfile
import zlib
from collections.abc import Mapping
from tokenize import TokenError

import numpy as np

from goalreel.atomic import replacing
from goalreel.errors import GoalreelError, Unusable
from goalreel.seal import LENGTH, check_seal, write_seal

# Level 1 packs the pictures here to within 1.7 times of level 6 at 2.3 times its speed.
_LEVEL = 1
_BROKEN = (zipfile.BadZipFile, zlib.error)
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip file can hold
_HEADER = ("kind", "version")


def write(path: str | os.PathLike, arrays: Mapping[str, np.ndarray]) -> None:
    """Write `arrays` as a compressed .npz whose bytes depend on nothing but the arrays."""
    with replacing(path) as temporary:
        with zipfile.ZipFile(temporary, "w") as archive:
            for name, array in arrays.items():
                member = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
                member.external_attr = 0o644 << 16
                content = io.BytesIO()
                np.lib.format.write_array(content, np.asanyarray(array), allow_pickle=False)
                # A ZipInfo comes with its own level: it takes the archive's only if told so here.
                archive.writestr(member, content.getbuffer(), zipfile.ZIP_DEFLATED, _LEVEL)
            archive.comment = bytes(LENGTH)
        write_seal(temporary)


def read(
    path: str | os.PathLike, kind: str, version: int, names: Mapping[str, str] | None = None
) -> dict[str, np.ndarray]:
    """Read the arrays of a file that goalreel wrote.

    `kind` and `version` are compared with the file's own; `names` maps the arrays that must be
    there to their dtypes' kinds as in `np.dtype.kind` ("f", "iu", "U", ...), None reads whatever
    there is. Where all of a file is read, its seal is checked; of a part, the zip's checksums.
    Raises GoalreelError if it is missing, Unusable if it is truncated, corrupt, of another kind or
    version, or holds objects.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = {name.removesuffix(".npy"): name for name in archive.namelist()}
            # np.load would not read to a member's end, where its checksum is compared.
            arrays = {name: _array(path, archive.read(members[name])) for name in _HEADER}
            _check_kind(path, arrays, kind, version)
            wanted = members.keys() - _HEADER if names is None else names
            if members.keys() <= {*_HEADER, *wanted}:
                check_seal(path)
            arrays = {name: _array(path, archive.read(members[name])) for name in wanted}
    except FileNotFoundError:
        raise GoalreelError(f"{path}: no such file; run snakemake to make it") from None
    except PermissionError as error:
        raise GoalreelError(str(error)) from None
    except KeyError as error:
        raise Unusable(path, f"it is not a goalreel {kind} file (no {error})") from None
    except (OSError, ValueError, EOFError, NotImplementedError, RuntimeError, *_BROKEN) as error:
        raise Unusable(path, f"it is truncated or corrupt ({error})") from None
    for name, kinds in (names or {}).items():
        if arrays[name].dtype.kind not in kinds:
            raise Unusable(path, f"its array {name!r} has dtype {arrays[name].dtype}")
    return arrays


def _check_kind(path, arrays: Mapping[str, np.ndarray], kind: str, version: int) -> None:
    found = tuple(str(arrays[name]) for name in _HEADER)
    if found != (kind, str(version)):
        raise Unusable(
            path, f"it is a {found[0]} file of version {found[1]}, not {kind} version {version}"
        )


def _array(path: str | os.PathLike, content: bytes) -> np.ndarray:
    stream = io.BytesIO(content)
    try:
        if np.lib.format.read_magic(stream) != (1, 0):
            stream.seek(0)
            return np.lib.format.read_array(stream, allow_pickle=False)
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
        if dtype.hasobject or any(length < 0 for length in shape):
            raise ValueError(f"an array of {dtype} and shape {shape}")
        # One copy: read_array takes a file that is in memory in small pieces, each copied twice.
        order = "F" if fortran else "C"
        return np.ndarray(shape, dtype, content, stream.tell(), order=order).copy(order)
    # Whatever a forged header asks for: NumPy evaluates it as a Python literal.
    except (ValueError, TypeError, OverflowError, MemoryError, SyntaxError, TokenError) as error:
        raise Unusable(path, f"it is truncated or corrupt ({error})") from None


def header(kind: str, version: int) -> dict[str, np.ndarray]:
    """Return the arrays that `read` recognises a file by; they go first into what is written."""
    return {"kind": np.array(kind), "version": np.array(version)}


def check(path: str | os.PathLike, holds: bool, what: str) -> None:
    """Raise Unusable about the file unless `holds`; `what` says what is wrong with it."""
    if not holds:
        raise Unusable(path, what)
