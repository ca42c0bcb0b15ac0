"""The plan of a run: the spec, files, command and resources of each job, from the table of stages.

A spec holds everything that affects a stage's result: its options, a fingerprint of its code, the
versions of its tools, the sha256 of the user's files, and a digest of each input's specs. A change
of anything else reruns nothing.

The Snakefile gets functions of a job's wildcards instead of lists of files, because each job on a
cluster parses it. For the same reason this module imports little.
"""

import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from pathlib import Path

from goalreel.encoding import ffmpeg
from goalreel.environments.gymnasium_ids import environment_files, environment_tools, module_files
from goalreel.environments.wrappers import wrapper_modules
from goalreel.errors import GoalreelError
from goalreel.policies import policy_dependencies as policies
from goalreel.provenance import spec as specs
from goalreel.provenance.checksums import results_files, sha256_of
from goalreel.provenance.fingerprint import fingerprint, modules
from goalreel.workflow.run import SHARDED, Run
from goalreel.workflow.run_checks import check_comparable
from goalreel.workflow.stages import STAGES, sources
from goalreel.workflow.used_when import excluded_modules

_REPEATED = ("lock", "check", "verify")  # stages that rerun even if nothing changed


@cache
def code_of(program: Path, unused: tuple[str, ...]) -> tuple[list[str], str]:
    """Return the unused modules that a program imports, and the fingerprint of the others."""
    excluded = sorted(modules(program).keys() & set(unused))
    return excluded, fingerprint(program, excluded)


class Plan:
    """The plan of a run."""

    def __init__(self, config: Mapping, scripts: Path, asked: int = 0):
        """Take the complete configuration, the folder of the programs, and the time of a check."""
        self.config, self.scripts, self.results = config, scripts, config["results"]
        self._asked, self.run = asked, Run(config)

    def spec(self, stage: str, wildcards: Mapping[str, str]) -> str:
        """Return a job's spec as JSON. Raises GoalreelError without such a job, tool or code."""
        spec = {**self._common(stage), "shard": self._covered(stage, wildcards)}
        if self.run.seeds is not None and STAGES[stage].is_of_run:
            if stage == self.run.player:
                first, count = spec["shard"]["first"], spec["shard"]["count"]
                spec["seeds"] = list(self.run.seeds[first : first + count])
            elif STAGES[stage].scope in ("run", "played"):  # to tell runs of other seeds apart
                spec["seeds"] = specs.json_digest(list(self.run.seeds))
        return specs.canonical(spec)

    def _covered(self, stage: str, wildcards: Mapping[str, str]) -> dict:
        """Return the range of episodes, or reaches, of a job."""
        scope = STAGES[stage].scope
        size, total, shards = (of(scope) for of in (self.run.size, self.run.total, self.run.shards))
        if scope in SHARDED:
            if int(wildcards["shard"]) >= shards:
                last = specs.shard_name(shards - 1)
                raise GoalreelError(f"{wildcards['shard']}: No such shard. The last one is {last}.")
            return specs.covered(int(wildcards["shard"]), size, total)
        if scope not in ("run", "played"):
            return {}
        whole = {"shards": shards, "reaches": total, "size": size}
        # A new spec each time, because Snakemake does not notice damage on the disk.
        return whole | {"asked": time.time_ns()} if stage in _REPEATED else whole

    @cache  # noqa: B019 - the plan lives as long as the workflow
    def _common(self, stage: str) -> dict:
        """Return the common part of the specs of a stage's jobs."""
        run, planned, makers = self.run, STAGES[stage], self.makers(stage)
        unused = tuple(excluded_modules(run)) if planned.is_of_run else ()
        excluded, code = code_of(self.scripts / f"{stage}.py", unused)
        common = {
            "stage": stage,
            "config": {key: run.value(key) for key in planned.config},
            "code": code,
            "excluded_modules": excluded,
            "tools": self.versions(stage),
            "input_digests": {name: self.digest(maker) for name, maker in makers.items()},
        }
        plays = "simulate" in (stage, *makers.values())
        if plays and not run.value("check_determinism"):
            common["reproducible"] = False  # as each file of the run records
        if plays and stage != "simulate" and run.value("render.quality") == "draft":
            common["draft"] = True
        if plays and run.policy == "sb3" and run.config["policy"]["batch"]:
            common["batched"] = True
        if stage == "simulate" and self._asked:  # a check plays again even if nothing changed
            common["asked"] = self._asked
        files = self._watched_files(stage)
        return common | ({"files": files} if files else {})

    @cache  # noqa: B019 - as above
    def digest(self, stage: str) -> str:
        """Return the digest of the common part of the specs of a stage's jobs."""
        return specs.common_digest(self._common(stage))

    def makers(self, stage: str) -> dict[str, str]:
        """Return the stages that make a stage's inputs, by option, for verify of all files."""
        if stage == "verify":
            return {name: name for name in self.stages if name not in ("compare", "verify")}
        return {option: maker for option, (maker, *_) in sources(stage, self.run).items()}

    def _watched_files(self, stage: str) -> dict[str, str]:
        """Return the sha256 of the files that affect a stage's result, except its modules."""
        config, planned, package = self.run.config, STAGES[stage], self.scripts / "goalreel"
        files = {name: sha256_of(package / name) for name in planned.files}
        plays = "player" in planned.tools
        if plays:
            files |= environment_files(config["env"], wrapper_modules(config["env_wrappers"]))
            if self._own_network:
                files |= module_files(self._own_network.partition(":")[0])
        if stage == "import_recording" or (plays and self.run.policy != "recording"):
            files |= policies.policy_files(config["policy"])
        if stage == "compare":
            if config["compare"] is None:
                fix = "snakemake compare --config 'compare=[results/a, results/b]'"
                raise GoalreelError(f"compare: Needs finished runs. Name their folders: {fix}")
            files |= results_files(config["compare"].values())
            if not config["compare_different"]:
                check_comparable(config["compare"])
        return files

    def users_files(self) -> list[Path]:
        """Return the user's files below the working directory that the playing jobs need."""
        files = self._watched_files(self.run.player) | policies.policy_files(self.config["policy"])
        return [path for path in map(Path, files) if path.is_file()]

    def versions(self, stage: str) -> dict[str, str]:
        """Return the versions of the tools that affect a stage's result."""
        tools = dict.fromkeys(STAGES[stage].tools)
        if tools.pop("artist", 0) is None:
            tools["pygame-ce" if self.run.env.has_atlas else "gymnasium"] = None
        if tools.pop("player", 0) is None:
            tools |= dict.fromkeys(self._player())
        return {tool: _version(tool) for tool in tools}

    def _player(self) -> list[str]:
        """Return the packages of the environment and of the policy."""
        config, run = self.run.config, self.run
        tools = list(policies.policy_tools(config["policy"]))
        tools += ["torch"] if self._own_network else []
        if run.env.computed:
            sees_pictures = run.policy == "trained"
            return [*tools, "pygame-ce", "pillow"] if sees_pictures else tools
        wrappers = wrapper_modules(config["env_wrappers"])
        return ["gymnasium", *environment_tools(config["env"], wrappers), *tools]

    @cached_property
    def _own_network(self) -> str:
        """The user's network that plays, "module:callable"."""
        return policies.own_network(self.config["policy"], self.config["train"])

    @cached_property
    def stages(self) -> list[str]:
        """The names of the stages of this run."""
        return [name for name, stage in STAGES.items() if stage.when(self.run)]

    def inputs(self, stage: str) -> dict[str, Callable[[Mapping], str | list[str]]]:
        """Return a function of the wildcards for each input, by option of the program."""
        scope, found = STAGES[stage].scope, sources(stage, self.run)
        return {option: partial(self._files, *source, scope) for option, source in found.items()}

    def _files(
        self, stage: str, output: str, is_first: bool, scope: str, wildcards: Mapping
    ) -> str | list[str]:
        """Return the files of an input, an output of a stage, for a job of a scope."""
        path, maker = f"{self.results}/{output}", STAGES[stage].scope
        if maker in SHARDED and scope not in SHARDED:
            return [path.format(shard=n) for n in self.shards(maker)[: 1 if is_first else None]]
        return path.format(**dict(wildcards)).rstrip("/")

    def outputs(self, stage: str, folder: str) -> dict[str, object]:
        """Return the outputs in a folder as Snakemake's rule takes them, by option."""
        from snakemake.io import directory, report

        made = {}
        for option, output in STAGES[stage].present(self.run).items():
            path = f"{folder}/{output.path.rstrip('/')}"
            made[option] = directory(path) if output.path.endswith("/") else path
            if output.report is not None:
                made[option] = report(made[option], **output.report)
        return made

    def files(self, stage: str) -> list[str]:
        """Return the files that all jobs of a stage leave."""
        scope, outputs = STAGES[stage].scope, STAGES[stage].present(self.run).values()
        paths = [f"{self.results}/{output.path.rstrip('/')}" for output in outputs]
        shards = self.shards(scope) if scope in SHARDED else [""]
        return [path.format(shard=shard) for path in paths for shard in shards]

    def threads(self, stage: str) -> int:
        """Return the number of threads of a job."""
        train = self.config["train"]
        return STAGES[stage].threads or train["processes"] * train["threads"]

    def command(self, stage: str, wildcards: Mapping, files: Mapping, threads: int) -> str:
        """Return the command of a job, for its inputs and outputs by option."""
        planned, program = STAGES[stage], str(self.scripts / f"{stage}.py")
        words = ["python", program, "--spec", self.spec(stage, wildcards)]
        saved = {name: f"{self.results}/{path}" for name, path in planned.saves.items()}
        counts = {"threads": threads} if planned.threads > 1 else {}
        for name, value in {**files, **saved, **self._limits(stage), **counts}.items():
            # A program finds the files of other shards next to that of the first.
            first = value if isinstance(value, str | int) else next(iter(value), None)
            if first is not None:  # another run of a suite has this input
                words += [f"--{name.replace('_', '-')}", str(first)]
        return shlex.join(words)

    def jobs(self, stage: str) -> Iterator[tuple[specs.Spec, dict[str, object]]]:
        """Yield the spec and the options of each job of a stage, for a run without Snakemake."""
        if not STAGES[stage].when(self.run):
            return
        scope = STAGES[stage].scope
        names = self.shards(scope) if scope in SHARDED else ()
        for wildcards in [{"shard": name} for name in names] or [{}]:
            files = {option: of(wildcards) for option, of in self.inputs(stage).items()}
            for option, output in STAGES[stage].present(self.run).items():
                files[option] = f"{self.results}/{output.path}".format(**wildcards)
            paths = {
                name: Path(file) if isinstance(file, str) else list(map(Path, file))
                for name, file in files.items()
            }
            yield specs.parse_spec(self.spec(stage, wildcards)), paths | self._limits(stage)

    def _limits(self, stage: str) -> dict[str, object]:
        return {n: v for n in STAGES[stage].limits if (v := self.run.value(n)) is not None}

    def shards(self, scope: str = "shard") -> Sequence[str]:
        """Return the names of all shards of a scope: "00000", "00001", ..."""
        return [specs.shard_name(shard) for shard in range(self.run.shards(scope))]


def _version(tool: str) -> str:
    return ffmpeg.version() if tool == "ffmpeg" else specs.package_version(tool)
