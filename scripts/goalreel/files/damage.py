"""One answer to a file that cannot be read: which it is, and what is wrong with it."""

import contextlib
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from tokenize import TokenError

from goalreel.errors import GoalreelError, UnusableFileError, is_system_error

# What readers of zip, zlib, NumPy's headers, MP4 boxes, JSON and XML raise at damaged content.
BROKEN = (
    *(zipfile.BadZipFile, zlib.error, struct.error, NotImplementedError, RuntimeError, EOFError),
    *(ValueError, TypeError, AttributeError, OverflowError, SyntaxError, TokenError, LookupError),
)


@contextlib.contextmanager
def reporting_damage(
    path: str | os.PathLike, damage: str = "it is truncated or corrupt"
) -> Iterator[None]:
    """Name the file in whatever the reading of it, in the block, raises.

    Raises:
        GoalreelError: there is no such file, or the machine cannot read it.
        UnusableFileError: its content is damaged.
    """
    try:
        yield
    except FileNotFoundError:
        raise GoalreelError(f"{path}: No such file. Run snakemake to make it.") from None
    except (OSError, *BROKEN) as error:
        if is_system_error(error):
            raise GoalreelError(f"{path}: Cannot be read ({error}).") from None
        raise UnusableFileError(path, f"{damage} ({str(error)[:200]})") from None
