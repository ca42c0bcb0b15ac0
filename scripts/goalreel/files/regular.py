"""Opening a file to be read, and nothing else: a pipe would be waited for, a device never ends."""

import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_file(path: str | os.PathLike) -> BinaryIO:
    """Open a file for reading. Raises OSError, also where there is something else than a file."""
    mode = Path(path).stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # a folder tells so itself
        raise OSError(f"{os.fspath(path)!r} is no file but a pipe or a device")
    return Path(path).open("rb")
