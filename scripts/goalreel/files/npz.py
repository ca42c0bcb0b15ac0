"""Reading and writing of .npz files: same arrays, same bytes, and a clear error for a bad file.

NumPy's own savez stamps each member with the time; this writer does not, and ends the file with a
seal. What a file may claim is held against its size in npz_members. What the arrays mean is told by
the modules that call this one (trajectories, atlas, frame_cache).
"""

import io
import os
import zipfile
from collections.abc import Mapping

import numpy as np

from goalreel.errors import GoalreelError, Unusable, blames_the_machine
from goalreel.files import npz_archive
from goalreel.files.atomic import replacing
from goalreel.files.seal import LENGTH, check_seal, write_seal

# Level 1 packs the pictures here to within 1.7 times of level 6 at 2.3 times its speed.
_LEVEL = 1
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
        with npz_archive.opened(path) as archive:
            _check_kind(path, archive.read(_HEADER), kind, version)
            wanted = archive.names - {*_HEADER} if names is None else names
            if archive.names <= {*_HEADER, *wanted}:
                check_seal(path)
            arrays = archive.read(wanted)
    except FileNotFoundError:
        raise GoalreelError(f"{path}: no such file; run snakemake to make it") from None
    except KeyError as error:
        raise Unusable(path, f"it is not a goalreel {kind} file (no {error})") from None
    except (OSError, *npz_archive.BROKEN) as error:
        if blames_the_machine(error):
            raise GoalreelError(f"{path}: cannot be read: {error}") from None
        raise Unusable(path, f"it is truncated or corrupt ({npz_archive.told(error)})") from None
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


def header(kind: str, version: int) -> dict[str, np.ndarray]:
    """Return the arrays that `read` recognises a file by; they go first into what is written."""
    return {"kind": np.array(kind), "version": np.array(version)}


def check(path: str | os.PathLike, holds: bool, what: str) -> None:
    """Raise Unusable about the file unless `holds`; `what` says what is wrong with it."""
    if not holds:
        raise Unusable(path, what)
