"""The stages as the workflow plans them: what shapes each one's result, as its spec.

A spec holds the values of the configuration that a stage uses, a fingerprint of its code, the
versions of the tools that shape its bytes and, as `files`, the sha256 of the user's own files (a
policy's, an environment's module), and nothing else: what is not in it reruns nothing.
This module is imported while the Snakefile is parsed, so it imports little.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from goalreel import ffmpeg
from goalreel.environments import NATIVE, environment_files, environment_tools
from goalreel.errors import GoalreelError
from goalreel.fingerprint import fingerprint
from goalreel.policy_files import policy_files, policy_tools
from goalreel.shards import shard_name
from goalreel.spec import canonical, package_version


@dataclass(frozen=True)
class _Stage:
    """config: dotted keys of what the stage uses; tools: what shapes its bytes."""

    config: tuple[str, ...]
    tools: tuple[str, ...]


_ENVIRONMENT = ("env", "env_kwargs", "max_steps")
_EPISODE = (*_ENVIRONMENT, "success")
# max_attempts is not among simulate's keys: it bounds the work, but shapes no trajectory.
_STAGES = {
    "simulate": _Stage((*_EPISODE, "seed", "policy", "film.show"), ("numpy",)),
    "atlas": _Stage(("env", "render.style"), ("numpy", "pygame-ce")),
    "render": _Stage(("env", "render.style"), ("numpy", "pygame-ce")),
    "encode": _Stage(("film.fps", "encode"), ("ffmpeg",)),
    "concat": _Stage(("env", "film.fps"), ("ffmpeg",)),
    "episodes": _Stage(("env", "film.fps"), ("pandas",)),
}
# Where Gymnasium plays: what it takes, and then what the environment's own package needs.
_GYMNASIUM = {
    "simulate": _Stage(_STAGES["simulate"].config, ("numpy", "gymnasium")),
    "render": _Stage(_ENVIRONMENT, ("numpy", "gymnasium")),
}


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
        env, policy = self._config["env"], self._config["policy"]
        plan, tools, files = _STAGES[stage], (), {}
        if env not in NATIVE and stage in _GYMNASIUM:
            plan = _GYMNASIUM[stage]
            tools, files = environment_tools(env), environment_files(env)
        if stage == "simulate":
            tools, files = (*tools, *policy_tools(policy)), files | policy_files(policy)
        common = {
            "stage": stage,
            "config": {key: _lookup(self._config, key) for key in plan.config},
            "code": fingerprint(self._folder / f"{stage}.py"),
            "tools": {tool: _version(tool) for tool in (*plan.tools, *tools)},
        }
        return common | ({"files": files} if files else {})


def _lookup(config: Mapping, key: str) -> object:
    value: object = config
    for part in key.split("."):
        value = value[part]
    if key == "encode" and value["crf"] is not None:
        return {name: inner for name, inner in value.items() if name != "qp"}  # crf wins
    return value


def _version(tool: str) -> str:
    return ffmpeg.version() if tool == "ffmpeg" else package_version(tool)
