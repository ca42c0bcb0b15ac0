"""Folders appear whole or not at all, as files do in atomic; large files are linked into them."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing_folder(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a temporary folder beside `path`; move it to `path` on success, remove it on failure.

    A folder that stands there is removed first: no system call swaps two. What an earlier writer
    of the same path left when it was killed is removed too. Raises what the block raises, and
    OSError where the parent cannot be written.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{path.name}.goalreel-"
    for left in [e.path for e in os.scandir(path.parent) if e.name.startswith(prefix)]:
        shutil.rmtree(left, ignore_errors=True)
    temporary = Path(tempfile.mkdtemp(prefix=prefix, dir=path.parent))
    try:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o777 & ~umask)  # mkdtemp makes private folders
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
