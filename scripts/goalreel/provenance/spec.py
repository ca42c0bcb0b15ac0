"""The spec: the request of a job, as canonical JSON.

The workflow plans it, the stage's program takes it as --spec, and each file that the program writes
carries it. All of them parse it with this module.
"""

import hashlib
import importlib.metadata
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from goalreel.errors import GoalreelError, UnusableFileError, needs_package

# Keys that differ between files of one plan: the shard, its seeds, and facts about the file itself.
_OF_ONE_FILE = ("shard", "seeds", "source", "sizes", "sha256", "metrics", "clip")
# Requirements of the packages that goalreel does not install by default.
_APART = {"onnxruntime": "onnxruntime", "torch": "goalreel[train]"}


@dataclass(frozen=True)
class Spec:
    """The request of a job."""

    text: str  # the JSON, canonical unless a person wrote it
    value: Mapping  # the parsed JSON
    stage: str  # the name of the stage and of its program
    config: Mapping  # the options that affect the result, by dotted key
    shard: Mapping  # first and count of a shard, or shards, reaches and size of a run
    tools: Mapping[str, str]  # the versions of packages that affect the result, by name
    code: str  # the fingerprint of the stage's code, "" if a person wrote the spec
    excluded_modules: Sequence[str]  # modules that the fingerprint skips
    input_digests: Mapping[str, str]  # for each input, the digest of its planned spec
    source: str  # the digest of the trajectories in the file, "" without any

    @property
    def digest(self) -> str:
        """The sha256 of the common part of the specs of this stage's files."""
        return common_digest(self.value)

    @property
    def reproducible(self) -> bool:
        """Whether goalreel checks that episodes depend only on their seeds."""
        return self.value.get("reproducible", True)

    @property
    def remarks(self) -> dict[str, str]:
        """The remarks on a film of inexact or unchecked episodes, by columns of tables."""
        words = {"reproducible": "not reproducible", "draft": "draft", "batched": "batched actions"}
        return {key: remark for key, remark in words.items() if key in self.value}

    def shard_of(self, number: int) -> dict[str, int]:
        """Return the range of a shard of its run, as the shard's specs have it."""
        return covered(number, self.shard["size"], self.shard["reaches"])

    def extended(self, **values: object) -> "Spec":
        """Return the spec with facts about a file, such as source, sizes or sha256."""
        return parse_spec(canonical({**self.value, **values}))


class _Section(dict):
    """A mapping in a spec, whose missing keys raise GoalreelError."""

    def __missing__(self, key: str):
        raise GoalreelError(f"spec: Lacks {key!r}. It has {', '.join(self) or 'nothing'}.")


def parse_spec(text: str, path: str | os.PathLike | None = None) -> Spec:
    """Return a spec from its JSON, in which a person may write only stage, config and shard.

    Raises GoalreelError if it is not a spec, UnusableFileError if it comes from the file `path`.
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
            raise ValueError("a value has the wrong type")
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        if path is None:
            raise GoalreelError(f"--spec: Not a spec ({error}).\n  {text[:200]}") from None
        raise UnusableFileError(path, f"it holds no spec ({str(error)[:200]})") from None
    stage, code, source = words
    return Spec(text, value, stage, config, shard, tools, code, excluded, input_digests, source)


NO_SPEC = parse_spec("{}")  # for data that no stage made


def canonical(value: object) -> str:
    """Return the canonical JSON of a value: sorted keys, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def covered(number: int, size: int, total: int) -> dict[str, int]:
    """Return the first episode, or reach, of a shard, and their count."""
    return {"first": number * size, "count": min(size, total - number * size)}


def shard_name(shard: int) -> str:
    """Return the name of a shard, its value of the wildcard `shard`: 00000, 00001, ..."""
    return f"{shard:05d}"


def folder_name(label: str) -> str:
    """Return the name of a folder for a label, such as that of a run or a row of a suite."""
    return re.sub(r"[^\w.+-]+", "-", label).strip("-.") or "run"


def shard_paths(first: Path, count: int) -> list[Path]:
    """Return the files of `count` shards from the file of the first."""
    # A command cannot list thousands: Linux limits an argument to 128 kB.
    start = int(first.stem)
    return [first.with_name(shard_name(start + n) + first.suffix) for n in range(count)]


def common_digest(value: Mapping) -> str:
    """Return the sha256 of a spec's part that is common to a stage's files."""
    return json_digest({key: part for key, part in value.items() if key not in _OF_ONE_FILE})


def json_digest(value: object) -> str:
    """Return the sha256 of the canonical JSON of a value."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


@cache
def package_version(name: str) -> str:
    """Return an installed package's version without importing it. Raises GoalreelError."""
    try:
        return importlib.metadata.version(name)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        raise GoalreelError(needs_package("This run", name, _APART.get(name, "goalreel"))) from None
