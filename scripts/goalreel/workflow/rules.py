"""The rules of the Snakefile, whose inputs, threads and commands are functions of wildcards."""

import itertools
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from goalreel.environments.gymnasium_ids import find_spec
from goalreel.errors import GoalreelError
from goalreel.workflow.plan import Plan
from goalreel.workflow.run import Run
from goalreel.workflow.stages import STAGES, VIEWS, WILDCARDS
from goalreel.workflow.suite import SuiteRun
from goalreel.workflow.suite_plan import SuitePlan

# The memory and run time that a job requests from a cluster. A change reruns nothing. Those of
# shards and trainings come from benchmarks/film/scale.py, with a margin. Others are estimates.
_OWN_MB = 400  # for the Snakemake process of the job, with a cluster's plugins
_OWN_MINUTES = 3  # for its start, and a slow file system
_SLOWER = 5  # factor for older cores and shared nodes
_STEP_MB = 100  # the unit of requested memory
_EPISODE_STEPS = 1000  # of an episode without max_episode_steps; few take as long as Atari's 27,000
# A shard that goalreel steps: MB, MB per reach, ms per reach.
_COMPUTED = {"simulate": (60, 0.015, 0.4), "render": (175, 0.04, 0.7), "encode": (220, 0.3, 4)}
_COMPUTED["play"] = _COMPUTED["simulate"]
_X264_MS = 130.0  # to encode a reach with x264
# A shard that Gymnasium steps: MB (for MuJoCo with Mesa), MB per frame, ms per frame. CarRacing
# takes 40 ms to play a frame, MuJoCo 180.
_PLAYED = {"simulate": (900, 0.001, 200), "encode": (250, 0.0005, 6), "play": (900, 0.0005, 20)}
_PLAYED["render"] = _PLAYED["simulate"]
_OTHERS = (1050, 0.006, 200)  # the same three numbers for other jobs
_OTHERS_MINUTES = 60
_TORCH_MB = 3000  # to load PyTorch
_NETWORK_MB, _NETWORK_MS = 200, 200  # to play from pixels, per job and per reach of Mountain Car
_PROCESS_MB = 1000  # of a training, with PyTorch
# A decision of a training: kB in a replay buffer, and ms with two processes.
_OF_FRAMES, _OF_STATES = (7.1, 8), (0.3, 2)  # 84x84 pixels, or up to 35 numbers


@dataclass(frozen=True)
class Rule:
    """A rule: a stage in those runs of a suite where it has the same outputs."""

    name: str
    stage: str
    plans: Mapping[str, Plan]  # by the wildcard `run`, "" without a suite
    folder: str  # of the results; it may contain the wildcard

    def _plan(self, wildcards: Mapping[str, str]) -> Plan:
        return self.plans[wildcards.get("run", "")]

    @property
    def constraints(self) -> dict[str, str]:
        """The regular expressions of the wildcards."""
        runs = {"run": "|".join(map(re.escape, self.plans))} if "" not in self.plans else {}
        suite = self.plans.get("")
        rows = "|".join(map(re.escape, suite.rows)) if isinstance(suite, SuitePlan) else ""
        return WILDCARDS | runs | ({"row": rows} if rows else {})

    def inputs(self) -> dict[str, Callable[[Mapping], str | list[str]]]:
        """Return a function of the wildcards for each input that a run has, by option."""

        def files(option: str, wildcards: Mapping[str, str]) -> str | list[str]:
            files_of = self._plan(wildcards).inputs(self.stage).get(option)
            return files_of(wildcards) if files_of else []

        options = dict.fromkeys(o for plan in self.plans.values() for o in plan.inputs(self.stage))
        return {option: partial(files, option) for option in options}

    def outputs(self) -> dict[str, object]:
        """Return the outputs as Snakemake's rule takes them, by option of the program."""
        return next(iter(self.plans.values())).outputs(self.stage, self.folder)

    def log(self, folder: str = "logs", ending: str = "log") -> str:
        """Return the path of the logs, with the wildcards of the outputs."""
        wildcards = re.findall(r"\{(?!run\b)\w+\}", next(iter(self.outputs().values())))
        return f"{'/'.join([self.folder, folder, self.stage, *wildcards])}.{ending}"

    @property
    def threads(self) -> int:
        """The number of threads of a job."""
        return max(plan.threads(self.stage) for plan in self.plans.values())

    def resources(self) -> dict[str, Callable[..., int]]:
        """Return the functions of a job that return its memory in MB and run time in minutes."""

        def asked(need: Callable[[str, Run, int], int]) -> Callable[..., int]:
            # A retry of a killed job requests twice as much, then four times.
            return lambda wildcards, attempt, threads=1: (
                need(self.stage, self._plan(wildcards).run, threads) * 2 ** (attempt - 1)
            )

        return {"mem_mb": asked(memory_mb), "runtime": asked(run_minutes)}

    def params(self) -> dict[str, Callable[..., str]]:
        """Return the functions of a job that return its spec and its command."""

        def spec(wildcards) -> str:
            try:
                return self._plan(wildcards).spec(self.stage, wildcards)
            except GoalreelError as error:  # an exception would come with Snakemake's traceback
                sys.exit(f"goalreel: {error}")

        def command(wildcards, input, output, threads) -> str:  # noqa: A002 - Snakemake's names
            files = {**dict(input.items()), **dict(output.items())}
            files.pop("runs", None)  # of a suite, whose programs find them in their folders
            return self._plan(wildcards).command(self.stage, dict(wildcards), files, threads)

        return {"spec": spec, "command": command}


class Plans:
    """The plans of a workflow: of a single run, or of each run of a suite."""

    def __init__(
        self, configs: dict[str, dict], suite_runs: dict[str, SuiteRun], scripts: Path, asked: int
    ):
        """Take the configurations and the runs by name, "" for a single run; the rest as `Plan`."""
        self.runs = {name: Plan(config, scripts, asked) for name, config in configs.items()}
        self.results, self.suite = next(iter(configs.values()))["results"], None
        if "" not in configs:
            self.results = str(Path(self.results).parent)
            self.suite = SuitePlan(suite_runs, self.runs, self.results)

    @property
    def stages(self) -> list[str]:
        """The names of all stages, in the order of the data."""
        plans = [*self.runs.values(), *([self.suite] if self.suite else [])]
        return [name for name in STAGES if any(name in plan.stages for plan in plans)]

    @property
    def rules(self) -> list[Rule]:
        """The rules of all stages."""
        # In a suite they have prefixes, because a view's name makes its files in all runs.
        folder = f"{self.results}/{{run}}" if self.suite else self.results
        made = []
        for stage in self.stages:
            is_shared = self.suite and stage in self.suite.stages
            if is_shared:
                made.append(Rule(f"suite_{stage}", stage, {"": self.suite}, self.results))
            groups: dict[tuple, dict[str, Plan]] = {}
            for name, plan in self.runs.items():
                if stage in plan.stages and not (is_shared and stage in VIEWS):
                    outputs = tuple(STAGES[stage].present(plan.run))
                    groups.setdefault(outputs, {})[name] = plan
            for number, plans in enumerate(groups.values()):
                prefix = f"run{number or ''}_" if self.suite else ""
                made.append(Rule(f"{prefix}{stage}", stage, plans, folder))
        return made

    @property
    def targets(self) -> dict[str, list[str]]:
        """The files of each view of all runs of a suite, by target."""
        if not self.suite:
            return {}
        plans = self.runs.values()
        targets = {
            view: [file for plan in plans if view in plan.stages for file in plan.files(view)]
            for view in self.stages
            if view in {*VIEWS, "train", "verify"}
        }
        targets["verify"] += self.suite.files("verify")
        return targets | {"compare": self.suite.comparisons, "index": self.suite.files("index")}

    @property
    def film(self) -> list[str]:
        """The film and the tables of each run, and the page of a suite."""
        plans = itertools.product(self.runs.values(), ("concat", "episodes"))
        films = [file for plan, stage in plans for file in plan.files(stage)]
        return [*films, *(self.suite.files("index") if self.suite else [])]


@cache
def memory_mb(stage: str, run: Run, threads: int = 1) -> int:
    """Return the memory that a job of a stage needs, in MB."""
    covered, train = run.covered(STAGES[stage].scope), run.config["train"]
    is_played = stage in _PLAYED and not run.env.computed
    mb, each, _ = _PLAYED[stage] if is_played else _COMPUTED.get(stage, _OTHERS)
    used = mb + each * covered * (_steps(run) if is_played else 1)
    if stage == "verify" and not run.env.computed:  # it replays episodes
        used += threads * _PLAYED["simulate"][0]
    if stage == "train":
        used += _of_decision(run)[0] * (train["buffer_size"] or 0) / 1000
        used += _PROCESS_MB * train["processes"]
    if stage in ("simulate", "play", "clips", "training_progress"):
        used += {"sb3": _TORCH_MB, "trained": _NETWORK_MB}.get(run.policy, 0)
    return _STEP_MB * -(-int(_OWN_MB + used) // _STEP_MB)


@cache
def run_minutes(stage: str, run: Run, threads: int = 1) -> int:
    """Return the run time that a job of a stage needs, in minutes."""
    covered = run.covered(STAGES[stage].scope)
    frames, reach_ms = _steps(run) * covered, _COMPUTED.get(stage, _OTHERS)[-1]
    if stage == "train":
        ms = 120_000 + _of_decision(run)[1] * run.config["train"]["total_timesteps"]
    elif stage == "verify":
        ms = 10_000 + 50 * covered + _PLAYED["simulate"][-1] * frames / threads
    elif stage not in _COMPUTED:
        ms = _OTHERS_MINUTES * 60_000 / _SLOWER + reach_ms * covered + 20 * frames
    elif not run.env.computed:
        ms = 1000 + _PLAYED[stage][-1] * frames
    else:
        reach_ms = _X264_MS if stage == "encode" and not run.encoder.assembled else reach_ms
        ms = 1000 + reach_ms * covered
        ms += _NETWORK_MS * covered if stage == run.player and run.policy == "trained" else 0
    return _OWN_MINUTES + int(_SLOWER * ms / 60_000)


def _of_decision(run: Run) -> tuple[float, float]:
    """Return the kB in a replay buffer and the ms of a decision of the training."""
    return _OF_FRAMES if isinstance(run.config["train"]["network"], str) else _OF_STATES


def _steps(run: Run) -> int:
    """Return about how many steps an episode in Gymnasium has, 0 if goalreel steps it."""
    if run.env.computed:
        return 0
    limit = find_spec(run.config["env"]).max_episode_steps or _EPISODE_STEPS
    return run.config["max_episode_steps"] or min(limit, _EPISODE_STEPS)
