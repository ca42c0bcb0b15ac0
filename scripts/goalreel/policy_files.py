"""The user's own files that shape a result, as the workflow watches them: by their content.

This module is imported while the Snakefile is parsed, so it imports little. What is in the files
is told in file_policy, recorded and sb3_policy.
"""

import hashlib
import importlib.util
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from goalreel.errors import GoalreelError


def policy_files(policy: Mapping) -> dict[str, str]:
    """Return the sha256 of each file that a checked `policy` section names, by its path.

    A path is taken from the run's working directory. Raises GoalreelError if a file is missing.
    """
    path = policy.get("file")
    if path is None:
        return {}
    try:
        return {path: hashlib.sha256(Path(path).read_bytes()).hexdigest()}
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise GoalreelError(
            f"policy.file: {path!r}: cannot be read ({reason}); "
            f"it is looked for in {Path.cwd()}, where snakemake runs"
        ) from None


def policy_tools(policy: Mapping) -> tuple[str, ...]:
    """Return the packages whose versions shape what a policy does, beside NumPy.

    Raises GoalreelError if one is not installed.
    """
    if policy["name"] != "sb3":
        return ()
    if importlib.util.find_spec("stable_baselines3") is None:
        raise GoalreelError(
            f"policy.name: 'sb3' needs the package stable-baselines3, which is not installed for "
            f"{sys.executable}: pip install stable-baselines3"
        )
    return ("stable-baselines3", "torch")


def check_files(spec: str, found: Mapping[str, str]) -> None:
    """Raise GoalreelError if a user's file is no longer what the workflow planned with.

    spec: a stage's, whose `files` may be missing if it was written by hand; found: their sha256
    now
    """
    planned = json.loads(spec).get("files", {})
    for name, digest in found.items():
        if planned.get(name, digest) != digest:
            raise GoalreelError(f"{name} has changed since the run began; run it again")
