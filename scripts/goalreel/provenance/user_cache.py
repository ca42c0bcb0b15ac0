"""The user's cache folder: what is costly to make and the same for every run of a spec."""

import contextlib
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from goalreel.errors import GoalreelError
from goalreel.files.atomic import replacing
from goalreel.provenance.spec import Spec


def from_cache(spec: Spec, output: Path, read: Callable, make: Callable[[], None]) -> str:
    """Copy what `spec` asks for from the user's cache to `output`, or make and keep it there.

    Args:
        spec: of what is wanted; equal specs share a file.
        output: the file to write.
        read: reads such a file, or raises GoalreelError.
        make: writes `output`.

    Returns:
        What was done, in a few words.
    """
    from platformdirs import user_cache_path

    name = f"{spec.stage}-{hashlib.sha256(spec.text.encode()).hexdigest()}.npz"
    cached = user_cache_path("goalreel") / name
    with contextlib.suppress(GoalreelError):
        read(cached)
        _copy(cached, output)
        return f"copied from {cached}"
    make()
    try:
        _copy(output, cached)
    except OSError as error:  # a home that cannot be written costs time, not the film
        return f"made; not kept in the user's cache: {error}"
    return f"made and kept as {cached}"


def _copy(source: Path, target: Path) -> None:
    """Copy a file; to pack the same arrays again would take longer than to read them."""
    with replacing(target) as temporary:
        shutil.copyfile(source, temporary)
