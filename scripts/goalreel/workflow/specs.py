"""The spec of each job, as the workflow plans it from the table of stages.

A spec holds the values of the configuration that a stage uses, a fingerprint of its code, the
versions of the tools that shape its bytes and, as `files`, the sha256 of the user's own files (a
policy's, an environment's module), and nothing else: what is not in it reruns nothing. Of each
input it holds a digest of its maker's specs, so that a stage can check that its inputs are those
that were planned.
It is imported while the Snakefile is parsed, so it imports little.
"""

import hashlib
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from goalreel.encoding import ffmpeg
from goalreel.environments.gymnasium_ids import environment_files, environment_tools
from goalreel.environments.wrappers import wrapper_modules
from goalreel.errors import GoalreelError
from goalreel.films.shards import shard_name
from goalreel.policies.policy_dependencies import policy_files, policy_tools
from goalreel.provenance.checksums import results_files
from goalreel.provenance.fingerprint import fingerprint, modules
from goalreel.provenance.spec import canonical, common_digest, covered, package_version
from goalreel.workflow.run import Run
from goalreel.workflow.stages import ARTISTS, STAGES, sources
from goalreel.workflow.used_when import excluded_modules

_OPTIONAL = ("pyarrow",)  # of a single view, and no requirement


class Specs:
    """The specs of all jobs of a run."""

    def __init__(self, config: Mapping, scripts: Path):
        """Take the complete configuration and the folder of the stages' programs."""
        self.run, self._scripts = Run(config), scripts

    def spec(self, stage: str, wildcards: Mapping[str, str]) -> str:
        """Return the canonical JSON of a job's spec.

        Args:
            stage: its name in the table of stages.
            wildcards: the job's: `shard`, or `variant` and `seed`, or none.

        Raises:
            GoalreelError: if the run has no such job, a tool does not run, or code cannot be read.
        """
        common = self._common(stage)
        if STAGES[stage].scope == "training":
            common = self._training(common, wildcards)
        shard = self._covered(stage, wildcards)
        if stage == "simulate" and self.run.seeds is not None:
            seeds = self.run.seeds[shard["first"] :][: shard["count"]]
            common = common | {"seeds": list(seeds)}
        return canonical({**common, "shard": shard})

    def _covered(self, stage: str, wildcards: Mapping[str, str]) -> dict:
        """Return which episodes, or reaches, a job covers."""
        size, scope = self.run.config["shard_size"], STAGES[stage].scope
        if scope == "shard":
            if int(wildcards["shard"]) >= self.run.shards:
                last = shard_name(self.run.shards - 1)
                raise GoalreelError(f"no shard {wildcards['shard']}: the last is {last}")
            return covered(int(wildcards["shard"]), size, self.run.count)
        if scope != "run":
            return {}
        whole = {"shards": self.run.shards, "reaches": self.run.count, "size": size}
        # Another spec each time: bit rot leaves no trace by which Snakemake would verify again.
        return whole | {"asked": time.time_ns()} if stage == "verify" else whole

    def _training(self, common: dict, wildcards: Mapping[str, str]) -> dict:
        seed = {"variant": wildcards["variant"], "train.seed": int(wildcards["seed"])}
        return common | {"config": common["config"] | seed}

    @cache  # noqa: B019 - there is one Specs, and it lives as long as the workflow
    def _common(self, stage: str) -> dict:
        """Return what the specs of all jobs of a stage have in common."""
        run, planned = self.run, STAGES[stage]
        program = self._scripts / f"{stage}.py"
        excluded = set(excluded_modules(run)) if planned.is_of_run else set()
        excluded = sorted(modules(program).keys() & excluded)
        common = {
            "stage": stage,
            "config": {key: run.value(key) for key in planned.config},
            "code": fingerprint(program, excluded),
            "excluded_modules": excluded,
            "tools": {tool: _version(tool) for tool in self._tools(stage)},
            "input_digests": self._input_digests(stage),
        }
        if not run.value("check") and "simulate" in (stage, *self.makers(stage).values()):
            common["reproducible"] = False  # which each file of the run says
        files = self._files(stage)
        return common | ({"files": files} if files else {})

    @cache  # noqa: B019 - as above
    def digest(self, stage: str) -> str:
        """Return the digest of what the specs of all jobs of a stage have in common."""
        return common_digest(self._common(stage))

    def makers(self, stage: str) -> dict[str, str]:
        """Return the stages whose results a stage takes, by option; verify compares them all."""
        if stage == "verify":
            made = (*(n for n, s in STAGES.items() if s.is_of_run and n != stage), self.run.policy)
            return {name: name for name in made if name in STAGES and STAGES[name].when(self.run)}
        return {option: source.stage for option, source in sources(stage, self.run).items()}

    def _input_digests(self, stage: str) -> dict[str, str]:
        if stage == "training_table":
            common, trainings = self._common("dqn"), self.run.trainings
            return {
                f"{wildcards['variant']} {wildcards['seed']}": common_digest(
                    self._training(common, wildcards)
                )
                for wildcards in trainings
            }
        return {option: self.digest(maker) for option, maker in self.makers(stage).items()}

    def _files(self, stage: str) -> dict[str, str]:
        """Return the sha256 of the files, beside modules, that shape a stage's result."""
        config, planned, package = self.run.config, STAGES[stage], self._scripts / "goalreel"
        files = {n: hashlib.sha256((package / n).read_bytes()).hexdigest() for n in planned.files}
        plays = "player" in planned.tools
        if plays:
            files |= environment_files(config["env"], wrapper_modules(config["env_wrappers"]))
        if stage == "recording" or (plays and self.run.policy != "recorded"):
            files |= policy_files(config["policy"])
        if stage == "compare":
            if config["compare"] is None:
                raise GoalreelError(
                    "compare is null; name the folders of two finished runs: "
                    "snakemake compare --config 'compare=[results-a, results-b]'"
                )
            files |= results_files(config["compare"])
        return files

    def _tools(self, stage: str) -> list[str]:
        """Return the names of the tools whose versions shape a result."""
        tools = dict.fromkeys(STAGES[stage].tools)
        if tools.pop("artist", 0) is None:
            style = self.run.config["render"]["style"]
            tools[ARTISTS[style] if self.run.env.has_atlas else "gymnasium"] = None
        if tools.pop("player", 0) is None:
            tools |= dict.fromkeys(self._player())
        return list(tools)

    def _player(self) -> list[str]:
        """Return the packages of the environment and of the policy."""
        config, run = self.run.config, self.run
        tools = list(policy_tools(config["policy"]))
        if run.env.computed:
            sees_pictures = run.policy == "pixels"
            return [*tools, ARTISTS["gymnasium"], "pillow"] if sees_pictures else tools
        wrappers = wrapper_modules(config["env_wrappers"])
        return ["gymnasium", *environment_tools(config["env"], wrappers), *tools]


def _version(tool: str) -> str:
    if tool == "ffmpeg":
        return ffmpeg.version()
    try:
        return package_version(tool)
    except GoalreelError:
        if tool in _OPTIONAL:
            return "none"  # the job tells; `verify`, which has every view's spec, goes on
        raise
