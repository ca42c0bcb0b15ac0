"""The stages as the workflow plans them: what shapes each one's result, as its spec.

A spec holds the values of the configuration that a stage uses, a fingerprint of its code, the
versions of the tools that shape its bytes and, as `files`, the sha256 of the user's own files (a
policy's, an environment's module), and nothing else: what is not in it reruns nothing. Of the
stages whose results it takes it holds a digest of their specs, so that a stage can tell whether it
is given what was planned.
This module is imported while the Snakefile is parsed, so it imports little.
"""

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from goalreel import ffmpeg
from goalreel.encoders import cards, choose, x264
from goalreel.environments import environment_files, environment_tools
from goalreel.errors import GoalreelError
from goalreel.kept_fingerprints import kept_fingerprint
from goalreel.mountain_car import NATIVE
from goalreel.policy_files import policy_files, policy_tools
from goalreel.shards import shard_name
from goalreel.spec import canonical, common_digest, package_version


@dataclass(frozen=True)
class _Stage:
    """What shapes a stage's bytes.

    config: dotted keys; inputs: the stages whose results it takes; tools, files (of the package).
    """

    config: tuple[str, ...]
    inputs: tuple[str, ...]
    tools: tuple[str, ...]
    files: tuple[str, ...] = ()


_ENVIRONMENT = ("env", "env_kwargs", "max_steps")
_EPISODE = (*_ENVIRONMENT, "success")
_FILM = ("env", "film.fps", "card_frames")
_CLIPS = ("env", "film.fps", "clips", "overlay.caption", "overlay.hud", "render", "encode")
_TEMPLATES = tuple(f"templates/report.{kind}" for kind in ("html.j2", "css", "js"))
_SWARM = ("env", "film.fps", "render", "encode")
_LEARNING = (
    *("env", "seed", "film.fps", "train.attempts", "overlay.title_card", "overlay.hud"),
    *("render", "encode"),
)
_SHARDS = ("simulate", "render")
_PIXELS = ("ffmpeg", "numpy", "pillow")
# max_attempts is not among simulate's keys: it bounds the work, but shapes no trajectory.
# `encode` is what encoders makes of that section: the film's encoder, or x264 for the views.
_STAGES = {
    "simulate": _Stage((*_EPISODE, "seed", "policy", "film.show"), ("train",), ("numpy",)),
    "atlas": _Stage(("env", "render"), (), ("numpy", "artist")),
    "render": _Stage(("env", "render"), ("simulate", "atlas"), ("numpy", "artist")),
    "dictionary": _Stage(("env", "render", "overlay.hud", "encode"), ("atlas",), _PIXELS),
    "encode": _Stage(
        (*_FILM, "overlay.caption", "overlay.hud", "encode"), (*_SHARDS, "dictionary"), _PIXELS
    ),
    "grid": _Stage(("env", "film.fps", "grid", "encode"), _SHARDS, _PIXELS),
    "swarm": _Stage(_SWARM, ("simulate", "atlas"), (*_PIXELS, "artist")),
    "phase": _Stage(("env", "film.fps", "encode"), ("simulate",), _PIXELS),
    "stills": _Stage(("env", "film.fps", "stills"), _SHARDS, ("numpy", "pillow")),
    "plots": _Stage(("env", "policy"), ("simulate",), ("matplotlib", "numpy", "pandas")),
    "report": _Stage(
        ("env", "policy", "film.fps"),
        (*_SHARDS, "atlas", "encode", "concat", "episodes", "plots", "grid", "swarm"),
        ("jinja2", "pandas"),
        _TEMPLATES,
    ),
    "clips": _Stage(_CLIPS, (*_SHARDS, "atlas", "train"), (*_PIXELS, "artist")),
    "train": _Stage(("env", "train.seed", "train.checkpoints"), (), ("numpy", "pandas")),
    "learning": _Stage(_LEARNING, ("train", "atlas"), (*_PIXELS, "pandas", "artist")),
    "concat": _Stage(_FILM, ("simulate", "encode"), ()),
    "episodes": _Stage(_FILM, ("simulate",), ("pandas",)),
}
# All that is there to be verified: each by the digest of its spec.
_STAGES["verify"] = _Stage(_FILM, tuple(_STAGES), ("ffmpeg", "numpy"))
# The package that draws a style, the tool "artist" of the stages above.
_ARTISTS = {"gymnasium": "pygame-ce", "vector": "pillow"}
# Where Gymnasium plays: what it takes, and then what the environment's own package needs.
_GYMNASIUM = {
    "simulate": _Stage(_STAGES["simulate"].config, ("train",), ("numpy", "gymnasium")),
    "render": _Stage(_ENVIRONMENT, ("simulate",), ("numpy", "gymnasium")),
}


class Specs:
    """The specs of all rules; each rule's `params: spec=` is one of the methods."""

    def __init__(self, config: Mapping, folder: str | Path):
        """Take the complete configuration and the folder of the stages' scripts."""
        self.encoder = choose(config)
        derived = {"encode": x264(config["encode"]), "card_frames": cards(config, self.encoder)}
        self._config = {**config, **derived}
        self._folder = Path(folder)

    @cached_property
    def shards(self) -> list[str]:
        """The names of all shards: "00000", "00001", ..."""
        count = -(-self._config["reaches"] // self._config["shard_size"])
        return [shard_name(shard) for shard in range(count)]

    def only_mountain_car(self, files):
        """Return files that exist for the two Mountain Cars, and none for other environments."""
        return files if self._config["env"] in NATIVE else []

    def assembled(self, files):
        """Return files that exist for assembled films, and none for others."""
        return files if self.encoder.assembled else []

    def learned(self, file: str):
        """Return the trainer's policy if it plays, else nothing."""
        return file if self._config["policy"]["name"] == "sarsa" else []

    def simulate(self, wildcards) -> str:
        """Return the spec of simulating a shard: its first reach and its number of reaches."""
        return self._of_shard("simulate", wildcards)

    def atlas(self, wildcards) -> str:
        """Return the spec of drawing the atlas."""
        return self._spec("atlas")

    def dictionary(self, wildcards) -> str:
        """Return the spec of coding the atlas's pictures."""
        return self._spec("dictionary")

    def render(self, wildcards) -> str:
        """Return the spec of rendering a shard."""
        return self._of_shard("render", wildcards)

    def encode(self, wildcards) -> str:
        """Return the spec of encoding a shard."""
        return self._of_shard("encode", wildcards)

    def concat(self, wildcards) -> str:
        """Return the spec of joining all segments."""
        return self._of_run("concat")

    def plots(self, wildcards) -> str:
        """Return the spec of the plots."""
        return self._of_run("plots")

    def report(self, wildcards) -> str:
        """Return the spec of the report's page."""
        return self._of_run("report")

    def clips(self, wildcards) -> str:
        """Return the spec of the clips, chosen from all shards."""
        return self._of_run("clips")

    def grid(self, wildcards) -> str:
        """Return the spec of the grid."""
        return self._of_run("grid")

    def swarm(self, wildcards) -> str:
        """Return the spec of the swarm."""
        return self._of_run("swarm")

    def phase(self, wildcards) -> str:
        """Return the spec of the phase plane's film."""
        return self._of_run("phase")

    def stills(self, wildcards) -> str:
        """Return the spec of poster, contact sheet and preview."""
        return self._of_run("stills")

    def train(self, wildcards) -> str:
        """Return the spec of training."""
        return self._spec("train")

    def learning(self, wildcards) -> str:
        """Return the spec of the film of learning."""
        return self._spec("learning")

    def episodes(self, wildcards) -> str:
        """Return the spec of the tables over all shards."""
        return self._of_run("episodes")

    def verify(self, wildcards) -> str:
        """Return the spec of verifying all results, another each time: bit rot leaves no trace."""
        shard = {"shards": len(self.shards), "reaches": self._config["reaches"]}
        shard |= {"size": self._config["shard_size"], "asked": time.time_ns()}
        return self._spec("verify", shard)

    def _of_shard(self, stage: str, wildcards) -> str:
        size, total = self._config["shard_size"], self._config["reaches"]
        first = int(wildcards.shard) * size
        if first >= total:
            raise GoalreelError(f"no shard {wildcards.shard}: the last is {self.shards[-1]}")
        return self._spec(stage, {"first": first, "count": min(size, total - first)})

    def _of_run(self, stage: str) -> str:
        return self._spec(stage, {"shards": len(self.shards), "reaches": self._config["reaches"]})

    def _spec(self, stage: str, shard: Mapping | None = None) -> str:
        return canonical({**self._common(stage), "shard": shard or {}})

    @cache  # noqa: B019 - there is one Specs, and it lives as long as the workflow
    def _common(self, stage: str) -> dict:
        env, policy = self._config["env"], self._config["policy"]
        plan, tools, files = _STAGES[stage], (), self._files(_STAGES[stage].files)
        config = self._config
        if stage in ("dictionary", "encode"):
            config = {**config, "encode": self.encoder.settings}
        if env not in NATIVE and stage in _GYMNASIUM:
            plan = _GYMNASIUM[stage]
            tools, files = environment_tools(env), environment_files(env)
        if stage == "simulate":
            tools, files = (*tools, *policy_tools(policy)), files | policy_files(policy)
        common = {
            "stage": stage,
            "config": {key: _lookup(config, key) for key in plan.config},
            "code": kept_fingerprint(self._folder / f"{stage}.py"),
            "tools": {tool: _version(tool) for tool in map(self._tool, (*plan.tools, *tools))},
            "made_of": {name: self._digest(name) for name in self._inputs(stage)},
        }
        return common | ({"files": files} if files else {})

    @cache  # noqa: B019 - as above
    def _digest(self, stage: str) -> str:
        return common_digest(self._common(stage))

    def _inputs(self, stage: str) -> list[str]:
        """Return the stages whose results a stage takes: some are made for some runs only."""
        missing = set() if self.encoder.assembled else {"dictionary"}
        if self._config["env"] not in NATIVE:
            missing |= {"atlas", "swarm"}
        if stage not in ("learning", "verify") and not self.learned("train"):
            missing.add("train")
        return [name for name in _STAGES[stage].inputs if name not in missing]

    def _tool(self, name: str) -> str:
        return _ARTISTS[self._config["render"]["style"]] if name == "artist" else name

    def _files(self, names: tuple[str, ...]) -> dict[str, str]:
        """Return the sha256 of files of the package that are no Python."""
        contents = {name: (self._folder / "goalreel" / name).read_bytes() for name in names}
        return {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}


def _lookup(config: Mapping, key: str) -> object:
    value: object = config
    for part in key.split("."):
        value = value[part]
    return value


def _version(tool: str) -> str:
    return ffmpeg.version() if tool == "ffmpeg" else package_version(tool)
