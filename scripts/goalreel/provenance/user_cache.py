"""The user's cache folder: what is costly to make and the same for every run of a spec."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from goalreel.errors import GoalreelError
from goalreel.files.atomic import replacing
from goalreel.provenance.spec import Spec


def cache_folder() -> Path:
    """Return goalreel's folder in the user's cache; it need not exist."""
    from platformdirs import user_cache_path

    return user_cache_path("goalreel")


def cached_path(spec: Spec) -> Path:
    """Return where the user's cache keeps what `spec` made; equal specs share a file."""
    name = f"{spec.stage}-{hashlib.sha256(spec.text.encode()).hexdigest()}.npz"
    return cache_folder() / name


def from_cache(spec: Spec, output: Path, read: Callable, make: Callable[[], None]) -> str:
    """Copy what `spec` asks for from the user's cache to `output`, or make and keep it there.

    read: reads such a file into an object with the `spec` that it was made by, or raises
    GoalreelError. make: writes `output`. Returns what was done, in a few words.
    """
    cached = cached_path(spec)
    try:
        if read(cached).spec.text != spec.text:
            raise GoalreelError(f"{cached}: made for another spec")
    except GoalreelError:
        make()
    else:
        _copy(cached, output)
        return f"copied from {cached}"
    try:
        _copy(output, cached)
    except OSError as error:  # a home that cannot be written costs time, not the film
        return f"made; not kept in the user's cache: {error}"
    return f"made and kept as {cached}"


def _copy(source: Path, target: Path) -> None:
    """Copy a file; to pack the same arrays again would take longer than to read them."""
    with replacing(target) as temporary:
        shutil.copyfile(source, temporary)
