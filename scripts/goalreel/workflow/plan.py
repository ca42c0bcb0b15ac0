"""What the rules ask of the plan of a run: specs, resources, and the files that jobs take."""

import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from goalreel.environments.registry import describe
from goalreel.errors import GoalreelError
from goalreel.films.shards import shard_name
from goalreel.policies.parameters import LEARNERS, MOST_AGES, is_trained_here
from goalreel.workflow import selection
from goalreel.workflow.resources import doubling, memory_mb, run_minutes
from goalreel.workflow.specs import Specs
from goalreel.workflow.stages import STAGES

_TRAINING_CORES = 2  # a training's process, and that of its player


class Plan:
    """The plan of a run.

    Input functions, not lists, name the files of all shards: a list would be made, and taken apart
    by Snakemake, whenever the Snakefile is parsed, which every job on a cluster does.
    """

    def __init__(self, config: Mapping, scripts: Path):
        """Take the complete configuration and the folder of the programs."""
        self.config = config
        self._specs = Specs(config, scripts)
        self.encoder = self._specs.encoder

    def spec(self, stage: str) -> Callable[[object], str]:
        """Return the function of a job's wildcards that gives its spec."""
        return lambda wildcards: _or_end(self._specs.spec, stage, wildcards)

    def memory(self, stage: str) -> Callable[..., int]:
        """Return the function of (wildcards, attempt, threads) that gives a job's memory in MB."""
        return doubling(partial(memory_mb, stage, self.config, self._covered(stage)))

    def minutes(self, stage: str) -> Callable[..., int]:
        """Return the function of (wildcards, attempt, threads) that gives a job's minutes."""
        covered = self._covered(stage)
        return doubling(partial(run_minutes, stage, self.config, covered, self.encoder))

    def _covered(self, stage: str) -> int:
        """Return the number of episodes, or reaches, that a job covers at most."""
        if stage == "learning":
            return MOST_AGES * self.config["train"]["attempts"]
        is_sharded = STAGES[stage].per == "shard"
        return (
            min(self.config["shard_size"], self._specs.count) if is_sharded else self._specs.count
        )

    @staticmethod
    def cores(cores: int | None) -> int:
        """Return the cores of a training, which takes all of its run, as its time is measured.

        Args:
            cores: what Snakemake was given: of a local run all that there are, of a profile for
                clusters what each job gets, None where a cluster's profile leaves it to the rules.
        """
        return cores or _TRAINING_CORES

    @property
    def local_rules(self) -> list[str]:
        """The rules that are too small for a job of their own on a cluster."""
        return ["all", "training", *(name for name, stage in STAGES.items() if stage.local)]

    @property
    def shards(self) -> list[str]:
        """The names of all shards: "00000", "00001", ..."""
        return [shard_name(shard) for shard in range(self._specs.shards)]

    @property
    def shard_sizes(self) -> dict[str, int]:
        """The number of episodes, or reaches, in each shard, by its name."""
        size, count = self.config["shard_size"], self._specs.count
        return {name: min(size, count - n * size) for n, name in enumerate(self.shards)}

    def all_shards(self, pattern: str) -> Callable[[object], list[str]]:
        """Return an input function of a file of every shard: `pattern` holds {shard}."""
        return lambda wildcards: [pattern.format(shard=shard) for shard in self.shards]

    def first_shard(self, pattern: str) -> str:
        """Return the first shard's file: `pattern` holds {shard}."""
        return pattern.format(shard=shard_name(0))

    @property
    def has_atlas(self) -> bool:
        """Whether all pictures of the environment are drawn beforehand."""
        return describe(self.config["env"]).has_atlas

    def with_atlas(self, files):
        """Return files that exist for environments with an atlas, and none for others."""
        return files if self.has_atlas else []

    def if_drawn(self, files):
        """Return files that exist for environments without an atlas, and none for others."""
        return [] if self.has_atlas else files

    def if_reaches(self, files):
        """Return files that exist where goal reaches are filmed, and none for episodes."""
        return files if selection.unit(self.config) == "reach" else []

    def if_assembled(self, files):
        """Return files that exist for assembled films, and none for others."""
        return files if self.encoder.assembled else []

    def if_recorded(self, files):
        """Return files that exist for recordings, and none for other policies."""
        return files if self.config["policy"]["name"] == "recorded" else []

    def trained_policy(self, files: Mapping[str, str]):
        """Return the file of the policy that plays if it is trained here, else nothing.

        files: what the trainings leave, by the policy's name; that of dqn with {variant}, {seed}.
        """
        policy = self.config["policy"]
        if not is_trained_here(policy):
            return []
        training = {"variant": policy.get("variant"), "seed": self.config["train"]["seed"]}
        return files[policy["name"]].format(**training)

    def learner_policy(self, files: Mapping[str, str]) -> Callable[[object], str | list]:
        """Return an input function of the file of the learner that is filmed; as above."""

        def of_learner(wildcards) -> str | list:
            _or_end(self._specs.check_learner)
            return self.trained_policy(files)

        return of_learner

    def if_learner(self, files):
        """Return files for policies that have checkpoints, and none for others."""
        return files if self.config["policy"]["name"] in LEARNERS else []

    def trainings(self, pattern: str) -> list[str]:
        """Return a file of every training that is compared: `pattern` holds {variant}, {seed}."""
        return [pattern.format(variant=v, seed=seed) for v, seed in self._specs.trainings]


def _or_end(function: Callable, *arguments):
    """Call a function; end the run with one message where it raises GoalreelError.

    As an exception an ffmpeg that does not run would come with Snakemake's traceback.
    """
    try:
        return function(*arguments)
    except GoalreelError as error:
        sys.exit(f"goalreel: {error}")
