"""The spec: what a stage was asked, as canonical JSON, and what its result says of its making.

The workflow writes it (stages); a stage reads it, checks that it runs with the tools that the
spec names, and stores it in its artefact.
"""

import importlib.metadata
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from goalreel.errors import GoalreelError


@dataclass(frozen=True)
class Spec:
    """A stage's spec.

    config: the values of the configuration that the stage uses, by their dotted keys
    shard: first (reach) and count (of reaches) for simulate, shards (their number) for a stage
    that takes them all, else empty
    text: the canonical JSON itself
    """

    stage: str
    config: Mapping
    shard: Mapping
    tools: Mapping
    text: str

    def check_tool(self, name: str, found: str) -> None:
        """Raise GoalreelError unless the spec names this version of the tool, or none."""
        wanted = self.tools.get(name, found)
        if wanted != found:
            raise GoalreelError(
                f"this job was planned with {name} {wanted}, but {sys.executable} has {found}; "
                f"give the workflow and its jobs the same environment"
            )


def canonical(value: Mapping) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, plain ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def parse_spec(text: str, stage: str) -> Spec:
    """Read a spec and check that it is this stage's and that the Python packages are those named.

    Raises GoalreelError. A spec written by hand may leave out `tools` and `code`.
    """
    try:
        value = json.loads(text)
        spec = Spec(
            value["stage"], value["config"], value.get("shard", {}), value.get("tools", {}), text
        )
    except (ValueError, KeyError, TypeError) as error:
        raise GoalreelError(f"--spec is not a spec ({error!r}): {text[:200]}") from None
    if spec.stage != stage:
        raise GoalreelError(f"--spec is for the stage {spec.stage!r}, not {stage!r}")
    for name in spec.tools:
        if name != "ffmpeg":  # which is no Python package: the stages that use it check it
            spec.check_tool(name, package_version(name))
    return spec


def package_version(name: str) -> str:
    """Return an installed package's version without importing it. Raises GoalreelError."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        raise GoalreelError(
            f"the package {name} is not installed for {sys.executable}; "
            f"install the pinned requirements.txt"
        ) from None
