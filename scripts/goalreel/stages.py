"""The stages as the workflow plans them: what shapes each one's result, as its spec.

A spec holds the values of the configuration that a stage uses, a fingerprint of its code and the
versions of the tools that shape its bytes, and nothing else: what is not in it reruns nothing.
This module is imported while the Snakefile is parsed, so it imports little.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from goalreel import ffmpeg
from goalreel.errors import GoalreelError
from goalreel.fingerprint import fingerprint
from goalreel.shards import shard_name
from goalreel.spec import canonical, package_version


@dataclass(frozen=True)
class _Stage:
    """config: dotted keys of what the stage uses; tools: what shapes its bytes."""

    config: tuple[str, ...]
    tools: tuple[str, ...]


# max_attempts is not among simulate's keys: it bounds the work, but shapes no trajectory.
_STAGES = {
    "simulate": _Stage(("env", "seed", "policy", "film.show"), ("numpy",)),
    "atlas": _Stage(("env", "render"), ("numpy", "artist")),
    "render": _Stage(("env", "render"), ("numpy", "artist")),
    "encode": _Stage(("film.fps", "encode"), ("ffmpeg",)),
    "concat": _Stage(("env", "film.fps"), ("ffmpeg",)),
    "episodes": _Stage(("env", "film.fps"), ("pandas",)),
}
# The package that draws a style, the tool "artist" of the stages above.
_ARTISTS = {"gymnasium": "pygame-ce", "vector": "pillow"}


class Specs:
    """The specs of all rules; each rule's `params: spec=` is one of the methods."""

    def __init__(self, config: Mapping, folder: str | Path):
        """Take the complete configuration and the folder of the stages' scripts."""
        self._config = config
        self._folder = Path(folder)

    @cached_property
    def shards(self) -> list[str]:
        """The names of all shards: "00000", "00001", ..."""
        count = -(-self._config["reaches"] // self._config["shard_size"])
        return [shard_name(shard) for shard in range(count)]

    def simulate(self, wildcards) -> str:
        """Return the spec of simulating a shard: its first reach and its number of reaches."""
        size, total = self._config["shard_size"], self._config["reaches"]
        first = int(wildcards.shard) * size
        if first >= total:
            raise GoalreelError(f"no shard {wildcards.shard}: the last is {self.shards[-1]}")
        return self._spec("simulate", {"first": first, "count": min(size, total - first)})

    def atlas(self, wildcards) -> str:
        """Return the spec of drawing the atlas."""
        return self._spec("atlas", {})

    def render(self, wildcards) -> str:
        """Return the spec of rendering a shard, which is the same for all."""
        return self._spec("render", {})

    def encode(self, wildcards) -> str:
        """Return the spec of encoding a shard, which is the same for all."""
        return self._spec("encode", {})

    def concat(self, wildcards) -> str:
        """Return the spec of joining all segments."""
        shard = {"shards": len(self.shards), "reaches": self._config["reaches"]}
        return self._spec("concat", shard)

    def episodes(self, wildcards) -> str:
        """Return the spec of the tables over all shards."""
        return self._spec("episodes", {"shards": len(self.shards)})

    def _spec(self, stage: str, shard: Mapping) -> str:
        return canonical({**self._common(stage), "shard": shard})

    @cache  # noqa: B019 - there is one Specs, and it lives as long as the workflow
    def _common(self, stage: str) -> dict:
        plan = _STAGES[stage]
        return {
            "stage": stage,
            "config": {key: _lookup(self._config, key) for key in plan.config},
            "code": fingerprint(self._folder / f"{stage}.py"),
            "tools": {tool: _version(tool) for tool in map(self._tool, plan.tools)},
        }

    def _tool(self, name: str) -> str:
        return _ARTISTS[self._config["render"]["style"]] if name == "artist" else name


def _lookup(config: Mapping, key: str) -> object:
    value: object = config
    for part in key.split("."):
        value = value[part]
    if key == "encode" and value["crf"] is not None:
        return {name: inner for name, inner in value.items() if name != "qp"}  # crf wins
    return value


def _version(tool: str) -> str:
    return ffmpeg.version() if tool == "ffmpeg" else package_version(tool)
