"""The rules of the Snakefile, whose inputs, threads and commands are functions of wildcards."""

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from goalreel.errors import GoalreelError
from goalreel.workflow.plan import Plan
from goalreel.workflow.resources import memory_mb, run_minutes
from goalreel.workflow.run import Run
from goalreel.workflow.stages import STAGES, VIEWS, WILDCARDS
from goalreel.workflow.suite import SuiteRun
from goalreel.workflow.suite_plan import SuitePlan


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
        return WILDCARDS | runs

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
    def priority(self) -> int:
        """The priority: all shards wait for an atlas, so its job starts first."""
        return int(STAGES[self.stage].scope == "any")

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
            return self._plan(wildcards).command(self.stage, dict(wildcards), files, threads)

        return {"spec": spec, "command": command}


class Plans:
    """The plans of a workflow: of a single run, or of each run of a suite."""

    def __init__(
        self,
        configs: Mapping[str, Mapping],
        suite_runs: Mapping[str, SuiteRun],
        scripts: Path,
        asked: int,
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
            if self.suite and stage in self.suite.stages:
                made.append(Rule(f"suite_{stage}", stage, {"": self.suite}, self.results))
                continue
            groups: dict[tuple, dict[str, Plan]] = {}
            for name, plan in self.runs.items():
                if stage in plan.stages:
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
        return targets | {"compare": self.suite.comparisons, "index": self.suite.files("index")}

    @property
    def film(self) -> list[str]:
        """The film and the tables of each run, and the page of a suite."""
        films = [file for plan in self.runs.values() for file in plan.film]
        return [*films, *(self.suite.files("index") if self.suite else [])]
