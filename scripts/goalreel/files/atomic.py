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
    """Yield a temporary path of the same name; move it to `path` on success, remove it on failure.

    It is in a folder beside `path`, where the block may make further files. That is removed at the
    end, and so is what an earlier writer of the same path left when it was killed. Raises what the
    block raises, and OSError where the folder cannot be written; one for want of space names
    `path`.
    """
    path = Path(path)
    try:
        with _folder_beside(path) as folder:
            temporary = folder / path.name
            temporary.touch()  # not by mkstemp: results are no private files
            yield temporary
            _flush(temporary)  # a power cut must not leave the new name on an empty file
            os.replace(temporary, path)
    except OSError as error:
        if error.errno in _FULL:  # a write's error names no file, a copy's the temporary one
            raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
        raise


@contextlib.contextmanager
def replacing_folder(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a temporary folder of the same name; move it to `path` on success, as `replacing` does.

    An existing folder is removed first: no system call swaps two.
    """
    path = Path(path)
    with _folder_beside(path) as folder:
        temporary = folder / path.name
        temporary.mkdir()
        yield temporary
        if path.exists():
            shutil.rmtree(path)
        os.replace(temporary, path)


@contextlib.contextmanager
def _folder_beside(path: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `path`; remove it at the end, and those of dead writers.

    A writer on another machine is taken to live for a day.
    """
    start, host = f".{path.name}.goalreel-", socket.gethostname()
    path.parent.mkdir(parents=True, exist_ok=True)
    for entry in os.scandir(path.parent):
        if not entry.name.startswith(start):
            continue
        own = re.fullmatch(rf"{re.escape(host)}-(\d+)-\w+", entry.name.removeprefix(start))
        with contextlib.suppress(FileNotFoundError):  # its writer has ended in the meantime
            if not _is_alive(int(own[1])) if own else time.time() - entry.stat().st_mtime > _DAY:
                shutil.rmtree(entry.path, ignore_errors=True)
    folder = path.with_name(f"{start}{host}-{os.getpid()}-{secrets.token_hex(4)}")
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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


def write_text(path: str | os.PathLike, text: str) -> None:
    """Write a whole text as UTF-8, its line breaks as they are."""
    with replacing(path) as temporary:
        temporary.write_bytes(text.encode())


def place(source: Path, target: Path) -> None:
    """Put a file of the run into a folder: as a hard link where that can be, else as a copy.

    A link takes no room, and stays the file that it was: goalreel replaces its results and never
    writes into one.
    """
    try:
        os.link(source.resolve(), target)
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, target)
