"""Files and folders appear whole or not at all: written beside their place, then moved there."""

import contextlib
import errno
import os
import re
import secrets
import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path

_DAY = 86_400  # seconds
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextlib.contextmanager
def replacing(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a temporary path beside `path`; move it to `path` on success, remove it on failure.

    The temporary name keeps the suffix, since ffmpeg takes the container from it. The block may
    make further files there, `temporary.with_suffix(...)`: they are removed at its end, and so is
    what an earlier writer of the same path left when it was killed. Raises what the block raises,
    and OSError where the folder cannot be written; one for want of space names `path`.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in _left(path):
        left.unlink(missing_ok=True)
    temporary = path.with_name(f"{_prefix(path)}{secrets.token_hex(4)}{path.suffix}")
    temporary.touch(exist_ok=False)  # not by mkstemp: results are no private files
    try:
        yield temporary
        _flush(temporary)  # a power cut must not leave the new name on an empty file
        os.replace(temporary, path)
    except OSError as error:
        if error.errno in _FULL:  # a write's error names no file, a copy's the temporary one
            raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
        raise
    finally:
        _remove(path.parent, temporary.name.removesuffix(path.suffix))


def _prefix(path: Path) -> str:
    """Return how the names of this process's temporary files for `path` begin."""
    return f".{path.name}.goalreel-{socket.gethostname()}-{os.getpid()}-"


def _left(path: Path) -> list[Path]:
    """Return what writers of `path` have left that live no more.

    A writer on another machine is taken to live for a day.
    """
    begin = f".{path.name}.goalreel-"
    own, left = re.compile(rf"\.?{re.escape(begin + socket.gethostname())}-(\d+)-"), []
    for entry in os.scandir(path.parent):
        # A temporary file may have been written by `replacing` too, whose own has one dot more.
        if not entry.name.startswith((begin, f".{begin}")):
            continue
        with contextlib.suppress(FileNotFoundError):  # its writer has ended in the meantime
            if here := own.match(entry.name):
                is_left = not _is_alive(int(here[1]))
            else:
                is_left = time.time() - entry.stat().st_mtime > _DAY
            if is_left:
                left.append(Path(entry.path))
    return left


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _flush(path: Path) -> None:
    """Have a file's content on the disk."""
    with path.open("rb") as stream:
        os.fsync(stream.fileno())


def _remove(folder: Path, prefix: str) -> None:
    # No glob: a file's name may hold its special characters. A temporary file may have been
    # written by `replacing` too, whose own has one dot more.
    for entry in os.scandir(folder):
        if entry.name.startswith((prefix, f".{prefix}")) and entry.is_file():
            Path(entry.path).unlink(missing_ok=True)


def write_text(path: str | os.PathLike, text: str) -> None:
    """Write a whole text as UTF-8, its line breaks as they are."""
    with replacing(path) as temporary:
        temporary.write_bytes(text.encode())


@contextlib.contextmanager
def replacing_folder(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a temporary folder beside `path`; move it to `path` on success, remove it on failure.

    An existing folder is removed first: no system call swaps two. What an earlier writer
    of the same path left when it was killed is removed too. Raises what the block raises, and
    OSError where the parent cannot be written.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in _left(path):
        shutil.rmtree(left, ignore_errors=True)
    temporary = path.with_name(f"{_prefix(path)}{secrets.token_hex(4)}")
    temporary.mkdir()
    try:
        yield temporary
        if path.exists():
            shutil.rmtree(path)
        os.replace(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def place(source: Path, target: Path) -> None:
    """Put a file of the run into a folder: as a hard link where that can be, else as a copy.

    A link takes no room, and stays the file that it was: goalreel replaces its results and never
    writes into one.
    """
    try:
        os.link(source.resolve(), target)
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, target)
