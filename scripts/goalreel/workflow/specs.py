"""The spec of each stage, as the workflow plans it from the table of stages.

A spec holds the values of the configuration that a stage uses, a fingerprint of its code, the
versions of the tools that shape its bytes and, as `files`, the sha256 of the user's own files (a
policy's, an environment's module), and nothing else: what is not in it reruns nothing. Of the
stages whose results it takes it holds a digest of their specs, so that a stage can check that its
inputs are those that were planned.
It is imported while the Snakefile is parsed, so it imports little.
"""

import hashlib
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from goalreel.encoding import ffmpeg
from goalreel.encoding.choice import cards, choose, x264
from goalreel.environments.gymnasium_ids import environment_files, environment_tools
from goalreel.environments.registry import CLASSIC_CONTROL, describe
from goalreel.environments.wrappers import wrapper_modules
from goalreel.errors import GoalreelError
from goalreel.films.shards import shard_name
from goalreel.policies.parameters import LEARNERS, is_trained_here, parameters
from goalreel.policies.watched_files import other_policies, policy_files, policy_tools
from goalreel.provenance.checksums import results_files
from goalreel.provenance.fingerprint import fingerprint
from goalreel.provenance.spec import canonical, common_digest, package_version
from goalreel.workflow import selection
from goalreel.workflow.resources import stage_of
from goalreel.workflow.stages import APART, ARTISTS, STAGES

_WISHED = ("pyarrow",)  # of a single view, and no requirement
_CAMERA = "goalreel.pictures.camera"  # films what Gymnasium plays
# Each assembles films that the other does not.
_BLOCKS = "goalreel.encoding.assembling.block_samples"
_PICTURES = "goalreel.encoding.assembling.segment_samples"
_GYMNASIUM = "goalreel.environments.gymnasium_env"  # plays and draws
_CLASSIC_CONTROL = ["goalreel.environments.classic_control", "goalreel.pictures.classic_control"]
_WARPED = "goalreel.pictures.warped"  # shows what goalreel plays to a network


def _not_played(env: str, policy: str) -> list[str]:
    """Return the modules that step and draw other environments than this one."""
    if not describe(env).computed:
        return [_WARPED, *([] if env in CLASSIC_CONTROL else _CLASSIC_CONTROL)]
    # A factory of the user's is told Gymnasium's spaces.
    return [_CAMERA, *_CLASSIC_CONTROL, *([] if policy == "file" else [_GYMNASIUM])]


class Specs:
    """The specs of all stages of a run."""

    def __init__(self, config: Mapping, scripts: Path):
        """Take the complete configuration and the folder of the stages' programs."""
        self._config, self._scripts = config, scripts
        self.encoder = choose(config)  # of the film
        policy = config["policy"]
        # What stages use of the configuration in another form than the user gave it.
        self._derived = {
            "film_encoder": self.encoder.settings,
            "view_encoder": x264(config),
            "card_frames": cards(config, self.encoder),
            "variant": policy.get("variant"),
            "learner": {k: policy[k] for k in ("name", "checkpoint", "file") if k in policy},
            "unit": selection.unit(config),
        }
        if selection.unit(config) == "episode":
            self._derived["success"] = None
        self.count = selection.count(config)  # of episodes, or of reaches
        self.shards = -(-self.count // config["shard_size"])

    def check_learner(self) -> None:
        """Raise GoalreelError if the policy has no checkpoints that could be filmed."""
        name, env = self._config["policy"]["name"], self._config["env"]
        if name not in LEARNERS:
            able = [learner for learner in LEARNERS if parameters(learner, env) is not None]
            env, learner = (env, able[0]) if able else ("MountainCar-v0", "dqn")
            raise GoalreelError(
                f"policy.name: {name!r} has no checkpoints that learning could film. "
                f"Type: snakemake learning --config env={env} policy={learner}"
            )

    @property
    def trainings(self) -> list[tuple[str, int]]:
        """The variant and the seed of every training by deep Q-learning that is compared."""
        dqn = self._config["dqn"]
        return [(variant, seed) for variant in dqn["variants"] for seed in dqn["seeds"]]

    def spec(self, stage: str, wildcards: object) -> str:
        """Return the canonical JSON of a job's spec.

        Args:
            stage: its name in the table of stages.
            wildcards: the job's, with `shard`, or `variant` and `seed` where it has them.

        Raises:
            GoalreelError: if the run has no such job, a tool does not run, or code cannot be read.
        """
        if STAGES[stage].per == "training":
            common = self._training(wildcards.variant, int(wildcards.seed))
        else:
            common = self._common(stage)
        shard = self._covered(stage, wildcards)
        seeds = selection.seeds(self._config) if stage == "simulate" else None
        if seeds is not None:
            first = shard["first"]
            common = common | {"seeds": list(seeds[first : first + shard["count"]])}
        return canonical({**common, "shard": shard})

    def _covered(self, stage: str, wildcards: object) -> dict:
        """Return which episodes, or reaches, a job covers."""
        size, total = self._config["shard_size"], self.count
        per = STAGES[stage].per
        if per == "shard":
            first = int(wildcards.shard) * size
            if first >= total:
                last = shard_name(self.shards - 1)
                raise GoalreelError(f"no shard {wildcards.shard}: the last is {last}")
            return {"first": first, "count": min(size, total - first)}
        if per in ("any", "training"):
            return {}
        whole = {"shards": self.shards, "reaches": total}
        # Another spec each time: bit rot leaves no trace by which Snakemake would verify again.
        return whole | {"size": size, "asked": time.time_ns()} if stage == "verify" else whole

    def _training(self, variant: str, seed: int) -> dict:
        common = self._common("dqn")
        return common | {"config": common["config"] | {"variant": variant, "train.seed": seed}}

    @cache  # noqa: B019 - there is one Specs, and it lives as long as the workflow
    def _common(self, stage: str) -> dict:
        """Return what the specs of all jobs of a stage have in common."""
        env, policy = self._config["env"], self._config["policy"]
        planned = stage_of(stage, env)
        tools, files = (), self._package_files(stage)
        if stage == "recording":
            files = files | policy_files(policy)
        if stage in ("simulate", "learning"):
            tools = policy_tools(policy)
            if policy["name"] != "recorded":
                files = files | policy_files(policy)
            if describe(env).computed:
                if policy["name"] == "pixels":  # which sees pictures
                    tools = (*tools, ARTISTS["gymnasium"], "pillow")
            else:
                wrappers = wrapper_modules(self._config["env_wrappers"])
                tools = (*environment_tools(env, wrappers), *tools)
                files = environment_files(env, wrappers) | files
        if stage == "compare":
            if self._config["compare"] is None:
                raise GoalreelError(
                    "compare is null; name the folders of two finished runs: "
                    "snakemake compare --config 'compare=[results-a, results-b]'"
                )
            files = files | results_files(self._config["compare"])
        plays = stage in ("simulate", "clips", "learning")
        without = other_policies(policy["name"]) if plays else []
        if stage not in APART:  # a training has a game of its own
            without += _not_played(env, policy["name"])
        if stage == "encode":
            without.append(_PICTURES if self.encoder.settings["encoder"] == "blocks" else _BLOCKS)
        made_of = {name: self.digest(name) for name in self._inputs(stage)}
        if stage == "training_table":
            made_of = {
                f"dqn {variant} {seed}": common_digest(self._training(variant, seed))
                for variant, seed in self.trainings
            }
        common = {
            "stage": stage,
            "config": {key: self._value(key) for key in planned.config},
            "code": fingerprint(self._scripts / f"{stage}.py", without),
            "without": without,
            "tools": {tool: _version(tool) for tool in map(self._tool, (*planned.tools, *tools))},
            "made_of": made_of,
        }
        played_once = not self._config["check"] and not describe(env).computed
        if played_once and "simulate" in (stage, *made_of):
            common["reproducible"] = False  # which each file of the run says
        return common | ({"files": files} if files else {})

    @cache  # noqa: B019 - as above
    def digest(self, stage: str) -> str:
        """Return the digest of what the specs of all jobs of a stage have in common."""
        return common_digest(self._common(stage))

    def _inputs(self, stage: str) -> list[str]:
        """Return the stages whose results a stage takes in this run."""
        policy = self._config["policy"]
        player = policy["name"]
        missing = {"training_table"}
        missing |= set() if self.encoder.assembled else {"coded_atlas"}
        if not describe(self._config["env"]).has_atlas:
            missing |= {"atlas", "render", "swarm"}
        if player != "dqn":
            missing.add("dqn")
        if player != "recorded":
            missing.add("recording")
        if player != "pixels" or not is_trained_here(policy):
            missing.add("pixels")
        if stage == "report" and player not in LEARNERS:
            missing.add("learning")
        return [name for name in STAGES[stage].inputs if name not in missing]

    def _value(self, key: str) -> object:
        """Return what a stage uses under a key of the table of stages."""
        if key in self._derived:
            return self._derived[key]
        value: object = self._config
        for part in key.split("."):
            value = value[part]
        return value

    def _package_files(self, stage: str) -> dict[str, str]:
        """Return the sha256 of the package's files, beside its modules, that shape a result."""
        package = self._scripts / "goalreel"
        return {
            name: hashlib.sha256((package / name).read_bytes()).hexdigest()
            for name in STAGES[stage].files
        }

    def _tool(self, name: str) -> str:
        return ARTISTS[self._config["render"]["style"]] if name == "artist" else name


def _version(tool: str) -> str:
    if tool == "ffmpeg":
        return ffmpeg.version()
    try:
        return package_version(tool)
    except GoalreelError:
        if tool in _WISHED:
            return "none"  # the job tells; `verify`, which has every view's spec, goes on
        raise
