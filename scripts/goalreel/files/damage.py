"""Turn the errors of reading a file into a message that names the file and the problem."""

import contextlib
import errno
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from tokenize import TokenError

from goalreel.errors import GoalreelError, UnusableFileError

MAX_BYTES = 4 << 30  # that a file in an archive may unpack to
# Exceptions that the readers of zip, zlib, NumPy headers, MP4, JSON and XML raise for damage.
BROKEN = (
    *(zipfile.BadZipFile, zlib.error, struct.error, NotImplementedError, RuntimeError, EOFError),
    *(ValueError, TypeError, AttributeError, OverflowError, SyntaxError, TokenError, LookupError),
)


@contextlib.contextmanager
def reporting_damage(
    path: str | os.PathLike, damage: str = "it is truncated or corrupt"
) -> Iterator[None]:
    """Convert errors from reading `path` in the block; `damage` describes a damaged file.

    Raises:
        GoalreelError: the file does not exist, or the system cannot read it.
        UnusableFileError: the content is damaged.
    """
    try:
        yield
    except FileNotFoundError:
        raise GoalreelError(f"{path}: No such file. Run snakemake to make it.") from None
    except (OSError, *BROKEN) as error:
        # Damaged content raises OSError with EINVAL (an impossible position), for a folder, or
        # without a number (zipfile). Else the file may be intact: permission, a failing disk.
        number = error.errno if isinstance(error, OSError) else None
        if number not in (None, errno.EINVAL, errno.EISDIR, errno.ENOTDIR):
            raise GoalreelError(f"{path}: Cannot be read ({error}).") from None
        raise UnusableFileError(path, f"{damage} ({str(error)[:200]})") from None


def read_member(archive: zipfile.ZipFile, name: str, most: int = MAX_BYTES) -> bytes:
    """Return a file of an archive. Raises ValueError if it unpacks to more bytes than `most`."""
    if (size := archive.getinfo(name).file_size) > most:
        raise ValueError(f"{name} unpacks to {size:,} bytes, and the limit is {most:,}")
    return archive.read(name)
