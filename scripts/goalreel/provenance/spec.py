"""The spec: what a stage was asked for, as canonical JSON, which its result carries.

The workflow plans it, the stage's program takes it as --spec, and every file that the program
writes holds it. Whoever holds it, it is parsed once, here.
"""

import hashlib
import importlib.metadata
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from goalreel.errors import GoalreelError, UnusableFileError, needs_package

# What differs among files of one plan: the shard, its seeds where they are given, and what the spec
# says of the file itself.
_OF_ONE_FILE = ("shard", "seeds", "source", "sizes", "sha256", "metrics", "clip")
# What installs a package that is not among goalreel's own.
_APART = {"pyarrow": "pyarrow", "torch": "goalreel[train]"}


@dataclass(frozen=True)
class Spec:
    """What a stage was asked for."""

    text: str  # the JSON itself; canonical, unless it was written by hand
    value: Mapping  # all of it, parsed
    stage: str  # its name, which is its program's too
    config: Mapping  # the values of the configuration that the stage uses, by their dotted keys
    shard: Mapping  # a shard's first reach and count of reaches, or the run's shards, reaches, size
    tools: Mapping[str, str]  # the versions of what shapes the bytes, by name
    code: str  # the fingerprint of the stage's code, "" by hand
    excluded_modules: Sequence[str]  # that the fingerprint leaves out
    input_digests: Mapping[str, str]  # of each input, the digest of the spec planned there
    source: str  # the digest of the trajectories that the file shows, "" where it shows none

    @property
    def digest(self) -> str:
        """A sha256 of what it shares with the specs of the plan's other files of this stage."""
        return common_digest(self.value)

    @property
    def reproducible(self) -> bool:
        """Whether the run's episodes depend on their seeds alone, as far as that is checked."""
        return self.value.get("reproducible", True)

    def shard_of(self, number: int) -> dict[str, int]:
        """Return what a shard of its run covers, as that shard's specs say it."""
        return covered(number, self.shard["size"], self.shard["reaches"])

    def extended(self, **values: object) -> "Spec":
        """Return the spec with what a file says of itself: source, sizes, sha256, ..."""
        return parse_spec(canonical({**self.value, **values}))


class _Section(dict):
    """A mapping in a spec; what it lacks is an error that names it."""

    def __missing__(self, key: str):
        raise GoalreelError(f"spec: Lacks {key!r}. It has {', '.join(self) or 'nothing'}.")


def parse_spec(text: str, path: str | os.PathLike | None = None) -> Spec:
    """Return a spec, given its JSON.

    Args:
        text: the JSON; a spec written by hand has but stage, config and shard.
        path: the file that holds it, None for a command line.

    Raises:
        GoalreelError: it is no spec.
        UnusableFileError: it is no spec, and a file holds it.
    """
    try:
        value = json.loads(text, object_hook=_Section)
        names = ("config", "shard", "tools", "input_digests")
        config, shard, tools, input_digests = parts = [value.get(n, _Section()) for n in names]
        words = [value.get(name, "") for name in ("stage", "code", "source")]
        excluded = value.get("excluded_modules", [])
        strings = [*words, *excluded, *tools.values(), *input_digests.values()]
        is_sound = all(isinstance(part, dict) for part in parts)
        is_sound = is_sound and all(isinstance(string, str) for string in strings)
        if not is_sound or not all(isinstance(number, int | None) for number in shard.values()):
            raise ValueError("its parts are not of a spec's types")
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        if path is None:
            raise GoalreelError(f"--spec: Not a spec ({error}).\n  {text[:200]}") from None
        raise UnusableFileError(path, f"it holds no spec ({str(error)[:200]})") from None
    stage, code, source = words
    return Spec(text, value, stage, config, shard, tools, code, excluded, input_digests, source)


NO_SPEC = parse_spec("{}")  # of what no stage made


def canonical(value: Mapping) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, plain ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def covered(number: int, size: int, total: int) -> dict[str, int]:
    """Return the first episode, or reach, of a shard, and its count of them."""
    return {"first": number * size, "count": min(size, total - number * size)}


def common_digest(value: Mapping) -> str:
    """Return a sha256 of what a spec, as a mapping, shares with those of the plan's other files."""
    common = {key: part for key, part in value.items() if key not in _OF_ONE_FILE}
    return hashlib.sha256(canonical(common).encode()).hexdigest()


def package_version(name: str) -> str:
    """Return an installed package's version without importing it. Raises GoalreelError."""
    try:
        return importlib.metadata.version(name)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        raise GoalreelError(needs_package("This run", name, _APART.get(name, "goalreel"))) from None
