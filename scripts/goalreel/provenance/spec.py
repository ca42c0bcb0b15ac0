"""The spec: what a stage was asked, as canonical JSON, and what its result says of its making.

The workflow writes it (stages); a stage reads it, checks that it runs with the tools that the
spec names, and stores it in its artefact.
"""

import hashlib
import importlib.metadata
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from goalreel.errors import GoalreelError

# What differs among the specs of one film's shards, and what .json files tell besides.
_PER_SHARD = ("shard", "source", "sha256", "metrics")
# What is no part of requirements.txt, and how to get it.
_APART = {"torch": "it: pip install -r requirements-train.in"}


@dataclass(frozen=True)
class Spec:
    """A stage's spec.

    stage: its name, which is its script's too
    tools: the versions that it was planned with, by name
    code: the fingerprint of the stage's code, or ""; without: the modules that it leaves out
    config: the values of the configuration that the stage uses, by their dotted keys
    shard: first (reach) and count (of reaches) for the stages of a shard, shards and reaches
    (their numbers) for a stage that takes them all, else empty
    made_of: for each stage whose results it takes, the digest of the spec that they were planned
    with (`common_digest`)
    text: the canonical JSON itself
    """

    stage: str
    config: Mapping
    shard: Mapping
    tools: Mapping
    code: str
    made_of: Mapping
    without: Sequence[str]
    text: str

    def signed(self, source: str) -> str:
        """Return the spec's JSON with the digest of the trajectories that its result is made of."""
        return canonical({**json.loads(self.text), "source": source})

    def check_tool(self, name: str, found: str) -> None:
        """Raise GoalreelError unless the spec names this version of the tool, or none."""
        wanted = self.tools.get(name, found)
        if wanted != found:
            raise GoalreelError(
                f"this job was planned with {name} {wanted}, but {sys.executable} has {found}; "
                f"give the workflow and its jobs the same environment"
            )


def has_form(value) -> bool:
    """Tell whether a value from a file has the form of a spec; what it lacks is told elsewhere."""
    if not isinstance(value, dict) or not isinstance(value.get("stage", ""), str):
        return False
    parts = [value.get(part, {}) for part in ("config", "shard", "tools", "made_of")]
    if not all(isinstance(part, dict) for part in parts):
        return False
    _, shard, *texts = parts
    numbers = all(isinstance(number, int) for number in shard.values())
    return numbers and all(isinstance(text, str) for part in texts for text in part.values())


def common_digest(spec: Mapping) -> str:
    """Return a sha256 of what a spec shares with those of the other shards: all but the shard."""
    common = {key: value for key, value in spec.items() if key not in _PER_SHARD}
    return hashlib.sha256(canonical(common).encode()).hexdigest()


class _Given(dict):
    """A mapping in a spec; what it lacks is an error that names it."""

    def __missing__(self, key: str):
        raise GoalreelError(f"--spec lacks {key!r}; it has {', '.join(self) or 'nothing'}")


def _no_number(constant: str):
    raise ValueError(f"{constant} is not a finite number")


def common_spec(specs: Mapping[Path, str]) -> Mapping:
    """Return what the specs of all shards have in common: all but the shard and its source.

    specs: each file's spec. Raises GoalreelError, naming two files, if they were made otherwise.
    """
    first_path, first = None, {}
    for path, text in specs.items():
        made = {k: value for k, value in _object(path, text).items() if k not in _PER_SHARD}
        first_path, first = (first_path, first) if first_path else (path, made)
        if made != first:
            raise GoalreelError(
                f"{path} differs from {first_path} in its options, code or tools; "
                f"delete the wrong one and run snakemake again"
            )
    return first


def _object(path: Path, text: str) -> dict:
    try:
        return {**json.loads(text)}
    except (ValueError, TypeError, RecursionError):
        raise GoalreelError(f"{path}: holds no spec; delete it and run snakemake again") from None


def check_alike(asked: Mapping, name: str, made: str) -> None:
    """Raise GoalreelError if a file was made with other values of what both specs tell.

    asked: the configuration of who uses it; name: what it is called; made: its spec.
    """
    config = json.loads(made).get("config", {})
    for key in sorted(
        {"env", "render", "overlay.hud", "film_encoder"} & config.keys() & asked.keys()
    ):
        if config[key] != asked[key]:
            what = "" if key == "env" else f"{key} "
            raise GoalreelError(
                f"the {name} of {what}{config[key]}, not of {asked[key]}; "
                f"delete that file and run snakemake again"
            )


def canonical(value: Mapping) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, plain ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def parse_spec(text: str, stage: str) -> Spec:
    """Read a spec and check that it is this stage's and that the Python packages are those named.

    Raises GoalreelError. A spec written by hand may leave out `tools`, `code` and `made_of`.
    """
    try:
        value = json.loads(text, object_hook=_Given, parse_constant=_no_number)
        for part in ("config", "shard", "tools", "made_of"):
            if not isinstance(value.get(part, {}), dict):
                raise TypeError(f"{part} is not a mapping")
        parts = [_Given(value.get(part, {})) for part in ("shard", "tools", "made_of")]
        config, (shard, tools, made_of) = _Given(value["config"]), parts
        spec = Spec(
            value["stage"],
            config,
            shard,
            tools,
            value.get("code", ""),
            made_of,
            value.get("without", []),
            text,
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
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
    except (importlib.metadata.PackageNotFoundError, ValueError):
        wanted = _APART.get(name, "the pinned requirements.txt")
        raise GoalreelError(
            f"the package {name} is not installed for {sys.executable}; install {wanted}"
        ) from None
