"""What the Snakefile's rule asks of the plan of a run: files, command, resources of each stage.

All of it is functions of a job's wildcards: lists of files would be made, and taken apart by
Snakemake, whenever the Snakefile is parsed, which every job on a cluster does.
"""

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from goalreel.errors import GoalreelError
from goalreel.films.shards import shard_name
from goalreel.provenance.spec import Spec, parse_spec
from goalreel.workflow.resources import doubling, memory_mb, run_minutes
from goalreel.workflow.run import Run
from goalreel.workflow.specs import Specs
from goalreel.workflow.stages import STAGES, Source, sources

_TRAINING_CORES = 2  # a training's process, and that of its player


class Plan:
    """The plan of a run."""

    def __init__(self, config: Mapping, scripts: Path):
        """Take the complete configuration and the folder of the programs."""
        self.config, self.scripts = config, scripts
        self.specs = Specs(config, scripts)
        self.run: Run = self.specs.run
        self.results = config["results"]

    @property
    def stages(self) -> list[str]:
        """The names of the stages that this run has."""
        return [name for name, stage in STAGES.items() if stage.when(self.run)]

    def inputs(self, stage: str) -> dict[str, Callable[[Mapping], str | list[str]]]:
        """Return a function of the wildcards for each input, by the option of the program."""
        scope = STAGES[stage].scope
        return {
            option: partial(self._files, source, scope)
            for option, source in sources(stage, self.run).items()
        }

    def _files(self, source: Source, scope: str, wildcards: Mapping) -> str | list[str]:
        """Return the files of an input for a job of a scope."""
        path, maker = f"{self.results}/{source.path}", STAGES[source.stage].scope
        if maker == "training" and scope == "any":
            return [path.format(**training) for training in self.run.trainings]
        if maker == "training":
            return path.format(**self.run.training)
        if maker == "shard" and scope != "shard":
            names = self.shards[:1] if source.is_first_shard else self.shards
            return [path.format(shard=name) for name in names]
        return path.format(**dict(wildcards)).rstrip("/")

    def outputs(self, stage: str) -> dict[str, object]:
        """Return the outputs, as the rule takes them, by the option of the program."""
        from snakemake.io import directory, report

        made = {}
        for option, output in STAGES[stage].present(self.run).items():
            path = f"{self.results}/{output.path.rstrip('/')}"
            made[option] = directory(path) if output.path.endswith("/") else path
            if output.report is not None:
                made[option] = report(made[option], **output.report)
        return made

    def log(self, stage: str, folder: str = "logs", ending: str = "log") -> str:
        """Return the path of a stage's logs, with its wildcards."""
        wildcards = {"shard": "/{shard}", "training": "/{variant}.{seed}"}
        return f"{self.results}/{folder}/{stage}{wildcards.get(STAGES[stage].scope, '')}.{ending}"

    def threads(self, stage: str, cores: int | None) -> int:
        """Return the threads of a job.

        Args:
            stage: its name in the table of stages.
            cores: what Snakemake was given: of a local run all that there are, of a profile for
                clusters what each job gets, None where a cluster's profile leaves it to the rules.
        """
        least = self.config["pixels"]["collectors"] + 1 if stage == "pixels" else 1
        return STAGES[stage].threads or max(least, cores or _TRAINING_CORES)

    def spec(self, stage: str) -> Callable[[Mapping], str]:
        """Return the function of a job's wildcards that gives its spec."""
        return lambda wildcards: _or_end(self.specs.spec, stage, dict(wildcards))

    def command(self, stage: str) -> Callable[..., str]:
        """Return the function of a job that gives its command."""

        def command(wildcards, input, output, threads) -> str:  # noqa: A002 - Snakemake's names
            files = {**dict(input.items()), **dict(output.items())}
            given = _or_end(self._arguments, stage, dict(wildcards), files, threads)
            return shlex.join(["python", str(self.scripts / f"{stage}.py"), *given])

        return command

    def jobs(self, stage: str) -> Iterator[tuple[Spec, dict[str, object]]]:
        """Yield the spec and the options of each job of a stage, for a process without Snakemake.

        Raises:
            GoalreelError: a tool does not run, or code cannot be read.
        """
        if not STAGES[stage].when(self.run):
            return
        is_sharded = STAGES[stage].scope == "shard"
        for wildcards in [{"shard": name} for name in self.shards] if is_sharded else [{}]:
            files = {option: of(wildcards) for option, of in self.inputs(stage).items()}
            for option, output in STAGES[stage].present(self.run).items():
                files[option] = f"{self.results}/{output.path}".format(**wildcards)
            paths = {
                name: Path(file) if isinstance(file, str) else list(map(Path, file))
                for name, file in files.items()
            }
            yield parse_spec(self.specs.spec(stage, wildcards)), paths | self._limits(stage)

    def _arguments(self, stage: str, wildcards: Mapping, files: Mapping, threads: int) -> list[str]:
        """Return the arguments of a job's program, for its inputs and outputs by option."""
        planned, words = STAGES[stage], ["--spec", self.specs.spec(stage, wildcards)]
        saved = {name: f"{self.results}/{path}" for name, path in planned.saves.items()}
        counts = {"threads": threads} if planned.threads > 1 else {}
        for name, value in {**files, **saved, **self._limits(stage), **counts}.items():
            # A program finds the other shards' files beside the first one's.
            first = value if isinstance(value, str | int) else value[0]
            words += [f"--{name.replace('_', '-')}", str(first)]
        return words

    def _limits(self, stage: str) -> dict[str, object]:
        return {name: self.run.value(name) for name in STAGES[stage].limits}

    def resources(self, stage: str) -> dict[str, Callable[..., int]]:
        """Return the functions of a job that give its memory in MB and its run time in minutes."""
        needs = {"mem_mb": memory_mb, "runtime": run_minutes}
        return {name: doubling(partial(need, stage, self.run)) for name, need in needs.items()}

    @property
    def shards(self) -> Sequence[str]:
        """The names of all shards: "00000", "00001", ..."""
        return [shard_name(shard) for shard in range(self.run.shards)]

    @property
    def film(self) -> list[str]:
        """The film and its tables."""
        made = {**STAGES["concat"].present(self.run), **STAGES["episodes"].present(self.run)}
        del made["tables"]
        return [f"{self.results}/{output.path}" for output in made.values()]

    @property
    def comparison(self) -> list[str]:
        """The table of all trainings that are compared, and what they leave."""
        policies = [STAGES["dqn"].outputs["policy"].format(**t) for t in self.run.trainings]
        return [f"{self.results}/{path}" for path in ("training/table.md", *policies)]


def _or_end(function: Callable, *arguments):
    """Call a function; end the run with one message where it raises GoalreelError.

    As an exception an ffmpeg that does not run would come with Snakemake's traceback.
    """
    try:
        return function(*arguments)
    except GoalreelError as error:
        sys.exit(f"goalreel: {error}")
