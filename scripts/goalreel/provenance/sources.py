"""The project's Python files as a whole: one hash of all their bytes.

While it stays the same, so do all fingerprints: a job sees by it within milliseconds that it runs
what was planned. How a fingerprint is found from syntax trees stands in fingerprint, where they are
kept in kept_fingerprints.
"""

import hashlib
import os
from functools import cache
from pathlib import Path

_PLANNED = "GOALREEL_SOURCES"


def sources_hash(folder: Path) -> str:
    """Return a sha256 over the names and bytes of the scripts in `folder` and of their package."""
    digest = hashlib.sha256()
    for path in sorted((*folder.glob("*.py"), *folder.glob("goalreel/**/*.py"))):
        try:
            content = path.read_bytes()
        except OSError:  # an editor's lock, or a file just taken away
            content = b""
        digest.update(f"{path.relative_to(folder).as_posix()}\n{len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def note_sources(folder: Path) -> None:
    """Tell the jobs that this process will start which sources it plans with."""
    os.environ[_PLANNED] = first_hash(folder)


def are_as_noted(folder: Path) -> bool:
    """Tell whether the sources are those that the workflow which started this job plans with."""
    noted = os.environ.get(_PLANNED)
    return noted is not None and noted == sources_hash(folder)


def differ_from_noted(folder: Path) -> bool:
    """Tell whether a workflow started this process that plans with other sources."""
    return os.environ.get(_PLANNED, first_hash(folder)) != first_hash(folder)


@cache
def first_hash(folder: Path) -> str:
    """Return the sources' hash when this process first asked: all its fingerprints go with it."""
    return sources_hash(folder)
