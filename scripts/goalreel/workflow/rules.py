"""The rules of the Snakefile: each stage in the runs that have it, as functions of wildcards."""

import re
from collections.abc import Callable, Mapping
from functools import partial

from goalreel.workflow.plan import Plan
from goalreel.workflow.resources import memory_mb, run_minutes
from goalreel.workflow.run import Run
from goalreel.workflow.stages import APART, STAGES, VIEWS, WILDCARDS


class Rule:
    """A rule: a stage in the runs in which it leaves the same files."""

    def __init__(self, name: str, stage: str, plans: Mapping[str, Plan], folder: str):
        """Take the rule's name, its stage, the plans of its runs, and the pattern of their folders.

        plans: by the value of the wildcard `run`, "" without one.
        """
        self.name, self.stage, self._plans, self._folder = name, stage, plans, folder
        self._first = next(iter(plans.values()))

    def _plan(self, wildcards: Mapping[str, str]) -> Plan:
        return self._plans[wildcards.get("run", "")]

    @property
    def constraints(self) -> dict[str, str]:
        """The regular expressions of the wildcards."""
        runs = {"run": "|".join(map(re.escape, self._plans))} if "" not in self._plans else {}
        return WILDCARDS | runs

    def inputs(self) -> dict[str, Callable[[Mapping], str | list[str]]]:
        """Return a function of the wildcards for each input, by the option of the program.

        A run that lacks an input has an empty list.
        """

        def files(option: str, wildcards: Mapping[str, str]) -> str | list[str]:
            of = self._plan(wildcards).inputs(self.stage).get(option)
            return of(wildcards) if of else []

        options = dict.fromkeys(o for plan in self._plans.values() for o in plan.inputs(self.stage))
        return {option: partial(files, option) for option in options}

    def outputs(self) -> dict[str, object]:
        """Return the outputs, as the rule takes them, by the option of the program."""
        return self._first.outputs(self.stage, self._folder)

    def log(self, folder: str = "logs", ending: str = "log") -> str:
        """Return the path of the logs, with its wildcards."""
        wildcards = {"shard": "/{shard}", "training": "/{variant}.{seed}"}
        place = wildcards.get(STAGES[self.stage].scope, "")
        return f"{self._folder}/{folder}/{self.stage}{place}.{ending}"

    def threads(self, cores: int | None) -> int:
        """Return the threads of a job.

        Args:
            cores: what Snakemake was given: of a local run all that there are, of a profile for
                clusters what each job gets, None where a cluster's profile leaves it to the rules.
        """
        return max(plan.threads(self.stage, cores) for plan in self._plans.values())

    def resources(self) -> dict[str, Callable[..., int]]:
        """Return the functions of a job that give its memory in MB and its run time in minutes."""

        def asked(need: Callable[[str, Run, int], int]) -> Callable[..., int]:
            # A job that was killed is tried again, and asks for twice and then four times as much.
            return lambda wildcards, attempt, threads=1: (
                need(self.stage, self._plan(wildcards).run, threads) * 2 ** (attempt - 1)
            )

        return {"mem_mb": asked(memory_mb), "runtime": asked(run_minutes)}

    def params(self) -> dict[str, Callable[..., str]]:
        """Return the functions of a job that give its spec and then its command."""

        def spec(wildcards) -> str:
            return self._plan(wildcards).job_spec(self.stage, wildcards)

        def command(wildcards, input, output, threads) -> str:  # noqa: A002 - Snakemake's names
            files = {**dict(input.items()), **dict(output.items())}
            return self._plan(wildcards).command(self.stage, dict(wildcards), files, threads)

        return {"spec": spec, "command": command}


class Plans:
    """The plans of a workflow: of its one run, or of each run of a suite by a wildcard `run`."""

    def __init__(self, plans: Mapping[str, Plan], results: str):
        """Take the plans by the names of their runs, "" of a single one, and the results folder."""
        self.runs, self.results = plans, results
        self.is_suite = "" not in plans

    @property
    def stages(self) -> list[str]:
        """The names of the stages that a run has, in the order of the data."""
        return [name for name in STAGES if any(name in plan.stages for plan in self.runs.values())]

    @property
    def rules(self) -> list[Rule]:
        """The rules of all stages.

        In a suite the name of a stage is the target that makes its files in all runs.
        """
        folder = f"{self.results}/{{run}}" if self.is_suite else self.results
        made = []
        for stage in self.stages:
            groups: dict[tuple, dict[str, Plan]] = {}
            for name, plan in self.runs.items():
                if stage in plan.stages:
                    outputs = tuple(STAGES[stage].present(plan.run))
                    groups.setdefault(outputs, {})[name] = plan
            for number, plans in enumerate(groups.values()):
                prefix = f"run{number or ''}_" if self.is_suite else ""
                made.append(Rule(f"{prefix}{stage}", stage, plans, folder))
        return made

    @property
    def targets(self) -> dict[str, list[str]]:
        """The files that a stage's name stands for in a suite, where its rule has a wildcard."""
        views = (name for name in self.stages if name in {*VIEWS, "verify"} - APART)
        plans = self.runs.values() if self.is_suite else ()
        return {
            view: [file for plan in plans if view in plan.stages for file in plan.files(view)]
            for view in views
            if self.is_suite
        }

    @property
    def film(self) -> list[str]:
        """The film and the tables of each run."""
        return [file for plan in self.runs.values() for file in plan.film]

    @property
    def comparison(self) -> list[str]:
        """The tables of all trainings that are compared, and what they leave."""
        return [file for plan in self.runs.values() for file in plan.comparison]
