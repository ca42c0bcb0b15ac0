"""The user's cache folder, for files that are slow to make and the same for all runs of a spec."""

import contextlib
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from goalreel.errors import GoalreelError
from goalreel.files.atomic import replacing
from goalreel.provenance.spec import Spec


def from_cache(spec: Spec, output: Path, read: Callable, make: Callable[[], None]) -> str:
    """Copy a spec's file from the user's cache, or make it and keep it; return a line to log."""
    # `read` raises GoalreelError for an unusable file, and `make` writes `output`.
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
    except OSError as error:  # the cache is optional
        return f"made; not kept in the user's cache: {error}"
    return f"made and kept as {cached}"


def _copy(source: Path, target: Path) -> None:
    """Copy a file, which is faster than writing its arrays again."""
    with replacing(target) as temporary:
        shutil.copyfile(source, temporary)
