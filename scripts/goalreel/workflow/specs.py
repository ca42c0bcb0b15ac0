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
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from pathlib import Path

from goalreel.encoding import ffmpeg
from goalreel.encoding.choice import cards, choose, x264
from goalreel.environments.gymnasium_ids import environment_files, environment_tools
from goalreel.environments.registry import describe
from goalreel.errors import GoalreelError
from goalreel.film.parts import Part, part_name, parts_of
from goalreel.film.shards import shard_name
from goalreel.policies.watched_files import policy_files, policy_tools
from goalreel.provenance.kept_fingerprints import kept_fingerprint
from goalreel.provenance.spec import canonical, common_digest, package_version
from goalreel.workflow.stages import ARTISTS, GYMNASIUM, STAGES


class Specs:
    """The specs of all rules; each rule's `params: spec=` is one of the methods."""

    def __init__(self, config: Mapping, folder: str | Path):
        """Take the complete configuration and the folder of the stages' scripts."""
        self.encoder = choose(config)
        derived = {"encode": x264(config["encode"]), "card_frames": cards(config, self.encoder)}
        derived |= {key: config["policy"].get(key) for key in ("variant", "checkpoint")}
        self._config = {**config, **derived}
        self._folder = Path(folder)

    @cached_property
    def shards(self) -> list[str]:
        """The names of all shards: "00000", "00001", ..."""
        return [shard_name(shard) for shard in range(self._count)]

    @cached_property
    def parts(self) -> list[Part]:
        """The parts of the film, where it is made in parts. Raises GoalreelError if it is not."""
        if self._per_file is None:
            raise GoalreelError("film.reaches_per_file is null, which makes one film, film.mp4")
        return parts_of(self._config["reaches"], self._per_file)

    def _part(self, wildcards) -> Part:
        if int(wildcards.part) >= len(self.parts):
            raise GoalreelError(
                f"no part {wildcards.part}: the last is {part_name(len(self.parts) - 1)}"
            )
        return self.parts[int(wildcards.part)]

    @property
    def _per_file(self) -> int | None:
        return self._config["film"]["reaches_per_file"]

    @property
    def _count(self) -> int:
        return -(-self._config["reaches"] // self._config["shard_size"])

    def all_shards(self, pattern: str) -> Callable[[object], list[str]]:
        """Return an input function of a file of every shard: `pattern` holds {shard}.

        A list in its place would be made, and taken apart by Snakemake, whenever the Snakefile is
        parsed, which every job on a cluster does.
        """
        return lambda wildcards: [pattern.format(shard=shard) for shard in self.shards]

    def part_shards(self, pattern: str) -> Callable[[object], list[str]]:
        """Return an input function of a file of every shard of a part: `pattern` holds {shard}."""
        return lambda wildcards: [
            pattern.format(shard=shard_name(shard))
            for shard in self._part(wildcards).shards(self._config["shard_size"])
        ]

    def all_parts(self, pattern: str) -> Callable[[object], list[str]]:
        """Return an input function of the file of every part: `pattern` holds {part}."""
        return lambda wildcards: [pattern.format(part=part_name(i)) for i in range(len(self.parts))]

    def films_of(self, whole: str, index: str, part: str) -> Callable[[object], list[str]]:
        """Return an input function of the film's file, or of the parts' index and all parts.

        The parts are named too: Snakemake makes what is missing for something that is there only
        where it is asked for.
        """
        parts = self.all_parts(part)
        return lambda wildcards: [whole] if self._per_file is None else [index, *parts(wildcards)]

    def first_shard(self, pattern: str) -> str:
        """Return the first shard's file: `pattern` holds {shard}."""
        return pattern.format(shard=shard_name(0))

    def only_mountain_car(self, files):
        """Return files that exist for the two Mountain Cars, and none for other environments."""
        return files if describe(self._config["env"]).has_atlas else []

    def assembled(self, files):
        """Return files that exist for assembled films, and none for others."""
        return files if self.encoder.assembled else []

    def learned(self, sarsa: str, dqn: str):
        """Return the file of the policy that plays if it is learned here, else nothing.

        dqn: holds {variant} and {seed}
        """
        config, policy = self._config, self._config["policy"]
        if policy["name"] == "dqn":
            return dqn.format(variant=policy["variant"], seed=config["train"]["seed"])
        return sarsa if policy["name"] == "sarsa" else []

    def learner(self, sarsa: str, dqn: str) -> str:
        """Return the file of the policies whose progress is filmed: as `learned`, else SARSA's."""
        return self.learned(sarsa, dqn) or sarsa

    def trainings(self, pattern: str) -> list[str]:
        """Return a file of every training that is compared: `pattern` holds {variant}, {seed}."""
        return [pattern.format(variant=variant, seed=seed) for variant, seed in self._trainings]

    @property
    def _trainings(self) -> list[tuple[str, int]]:
        dqn = self._config["dqn"]
        return [(variant, seed) for variant in dqn["variants"] for seed in dqn["seeds"]]

    def of_learners(self, files):
        """Return files for policies that are learned here, and none for others."""
        return files if self._config["policy"]["name"] in ("sarsa", "dqn") else []

    def compared(self, files):
        """Return files that exist where the report compares trainings, and none elsewhere."""
        return files if self._config["dqn"]["report"] else []

    def simulate(self, wildcards) -> str:
        """Return the spec of simulating a shard: its first reach and its number of reaches."""
        return self._of_shard("simulate", wildcards)

    def atlas(self, wildcards) -> str:
        """Return the spec of drawing the atlas."""
        return self._spec("atlas")

    def coded_atlas(self, wildcards) -> str:
        """Return the spec of coding the atlas's pictures."""
        return self._spec("coded_atlas")

    def render(self, wildcards) -> str:
        """Return the spec of rendering a shard."""
        return self._of_shard("render", wildcards)

    def encode(self, wildcards) -> str:
        """Return the spec of encoding a shard."""
        return self._of_shard("encode", wildcards)

    def concat(self, wildcards) -> str:
        """Return the spec of joining all segments."""
        return self._of_run("concat")

    def part(self, wildcards) -> str:
        """Return the spec of joining the segments of a part, whose `reaches` end before that."""
        part = self._part(wildcards)
        count = len(part.shards(self._config["shard_size"]))
        return self._spec("concat", {"first": part.first, "shards": count, "reaches": part.end})

    def films(self, wildcards) -> str:
        """Return the spec of the index of all parts."""
        shard = {"parts": len(self.parts), "reaches": self._config["reaches"]}
        return self._spec("films", shard)

    def plots(self, wildcards) -> str:
        """Return the spec of the plots."""
        return self._of_run("plots")

    def report(self, wildcards) -> str:
        """Return the spec of the report's page, which plays one film. Raises GoalreelError."""
        if self._per_file is not None:
            raise GoalreelError(
                f"the report plays one film, and film.reaches_per_file is {self._per_file}; "
                f"set it to null for a report"
            )
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

    def dqn(self, wildcards) -> str:
        """Return the spec of deep Q-learning, of a variant from a seed."""
        return canonical(self._training(wildcards.variant, int(wildcards.seed)) | {"shard": {}})

    def _training(self, variant: str, seed: int) -> dict:
        common = self._common("dqn")
        return common | {"config": common["config"] | {"variant": variant, "train.seed": seed}}

    def training_table(self, wildcards) -> str:
        """Return the spec of the table and plots over all trainings that are compared."""
        return canonical(self._common("training_table") | {"shard": {}})

    def pixels(self, wildcards) -> str:
        """Return the spec of training from pixels."""
        return self._spec("pixels")

    def learning(self, wildcards) -> str:
        """Return the spec of the film of learning."""
        return self._spec("learning")

    def episodes(self, wildcards) -> str:
        """Return the spec of the tables over all shards."""
        return self._of_run("episodes")

    def verify(self, wildcards) -> str:
        """Return the spec of verifying all results, another each time: bit rot leaves no trace."""
        shard = {"shards": len(self.shards), "reaches": self._config["reaches"]}
        shard |= {"size": self._config["shard_size"], "per_file": self._per_file}
        shard["asked"] = time.time_ns()
        return self._spec("verify", shard)

    def _of_shard(self, stage: str, wildcards) -> str:
        size, total = self._config["shard_size"], self._config["reaches"]
        first = int(wildcards.shard) * size
        if first >= total:
            raise GoalreelError(
                f"no shard {wildcards.shard}: the last is {shard_name(self._count - 1)}"
            )
        return self._spec(stage, {"first": first, "count": min(size, total - first)})

    def _of_run(self, stage: str) -> str:
        return self._spec(stage, {"shards": self._count, "reaches": self._config["reaches"]})

    def _spec(self, stage: str, shard: Mapping | None = None) -> str:
        return canonical({**self._common(stage), "shard": shard or {}})

    @cache  # noqa: B019 - there is one Specs, and it lives as long as the workflow
    def _common(self, stage: str) -> dict:
        env, policy = self._config["env"], self._config["policy"]
        plan, tools, files = STAGES[stage], (), self._files(STAGES[stage].files)
        config = self._config
        if stage in ("coded_atlas", "encode"):
            config = {**config, "encode": self.encoder.settings}
        if not describe(env).computed and stage in GYMNASIUM:
            plan = GYMNASIUM[stage]
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
        if stage == "training_table":
            common["made_of"] = {
                f"dqn {variant} {seed}": common_digest(self._training(variant, seed))
                for variant, seed in self._trainings
            }
        return common | ({"files": files} if files else {})

    @cache  # noqa: B019 - as above
    def _digest(self, stage: str) -> str:
        return common_digest(self._common(stage))

    def _inputs(self, stage: str) -> list[str]:
        """Return the stages whose results a stage takes: some are made for some runs only."""
        missing = {"pixels"} | (set() if self.encoder.assembled else {"coded_atlas"})
        if not describe(self._config["env"]).has_atlas:
            missing |= {"atlas", "swarm"}
        policy = self._config["policy"]["name"]
        if stage != "verify" and policy != "sarsa" and (stage != "learning" or policy == "dqn"):
            missing.add("train")
        if policy != "dqn":
            missing.add("dqn")
        if stage == "report" and policy not in ("sarsa", "dqn"):
            missing.add("learning")
        if not self._config["dqn"]["report"]:
            missing.add("training_table")
        return [name for name in STAGES[stage].inputs if name not in missing]

    def _tool(self, name: str) -> str:
        return ARTISTS[self._config["render"]["style"]] if name == "artist" else name

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
