"""The user's cache folder: what is costly to make and the same for every run of a spec."""

import hashlib
from pathlib import Path

from goalreel.spec import Spec


def cache_folder() -> Path:
    """Return goalreel's folder in the user's cache; it need not exist."""
    from platformdirs import user_cache_path

    return user_cache_path("goalreel")


def cached_path(spec: Spec) -> Path:
    """Return where the user's cache keeps what `spec` made; equal specs share a file."""
    name = f"{spec.stage}-{hashlib.sha256(spec.text.encode()).hexdigest()}.npz"
    return cache_folder() / name
