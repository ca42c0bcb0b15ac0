"""Write files and folders atomically: next to their destination first, then moved into place."""

import contextlib
import errno
import os
import re
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_DAY = 86_400  # seconds
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextlib.contextmanager
def replacing(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a temporary path of the same name, and move it to `path` if the block succeeds.

    The path lies in a temporary folder next to `path`, in which the block may create other files.
    The folder is removed at the end, and so are folders that killed writers of `path` left behind.

    Raises:
        OSError: the folder cannot be written. If the disk is full, the error names `path`.
    """
    path = Path(path)
    try:
        with _temporary_folder(path) as folder:
            temporary = folder / path.name
            temporary.touch()  # mkstemp would make the file private
            yield temporary
            with temporary.open("rb") as stream:  # after a power failure `path` must not be empty
                os.fsync(stream.fileno())
            os.replace(temporary, path)
    except OSError as error:
        if error.errno in _FULL:  # the error names no file, or the temporary one
            raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
        raise


@contextlib.contextmanager
def replacing_folder(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a temporary folder of the same name, and move it to `path` as `replacing` does."""
    # An existing folder is removed first, as no portable call swaps two folders.
    path = Path(path)
    with _temporary_folder(path) as folder:
        temporary = folder / path.name
        temporary.mkdir()
        yield temporary
        if path.exists():
            shutil.rmtree(path)
        os.replace(temporary, path)


@contextlib.contextmanager
def _temporary_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder next to `path`, and remove it and those of dead writers at last."""
    # A writer on another machine counts as dead after a day.
    prefix, host = f".{path.name}.goalreel-", socket.gethostname()
    path.parent.mkdir(parents=True, exist_ok=True)
    for entry in os.scandir(path.parent):
        if not entry.name.startswith(prefix):
            continue
        local = re.fullmatch(rf"{re.escape(host)}-(\d+)-\w+", entry.name.removeprefix(prefix))
        with contextlib.suppress(FileNotFoundError):  # removed by its writer meanwhile
            age = time.time() - entry.stat().st_mtime
            if not _is_alive(int(local[1])) if local else age > _DAY:
                shutil.rmtree(entry.path, ignore_errors=True)
    name = f"{prefix}{host}-{os.getpid()}-"
    with tempfile.TemporaryDirectory("", name, path.parent, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _is_alive(process: int) -> bool:
    import psutil

    try:  # a killed process stays as a zombie in a container whose first process does not wait
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def write_text(path: str | os.PathLike, text: str) -> None:
    """Write a text file in UTF-8 atomically, with line breaks unchanged."""
    with replacing(path) as temporary:
        temporary.write_bytes(text.encode())


def link_or_copy(source: Path, target: Path) -> None:
    """Put a file of the run at `target`: a hard link if possible, else a copy."""
    # A link keeps its content: goalreel replaces results and never modifies them in place.
    try:
        os.link(source.resolve(), target)
    except OSError:  # different file system, or no support for links
        shutil.copyfile(source, target)
