"""The plan of a suite's own jobs: its page, the comparisons of each row, and their verification."""

import hashlib
import re
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from goalreel.policies.parameters import RECORDED
from goalreel.provenance.fingerprint import fingerprint
from goalreel.provenance.spec import canonical, folder_name, parse_spec
from goalreel.workflow.plan import Plan
from goalreel.workflow.run_checks import COMPARED
from goalreel.workflow.stages import STAGES
from goalreel.workflow.suite import SuiteRun

# The stages of each run whose files a stage of the suite reads.
_READ = {"compare": ("episodes", "simulate", "render"), "index": ("episodes", "stills", "report")}


class SuitePlan(Plan):
    """The plan of a suite's own jobs."""

    stages = ("compare", "index", "verify")

    def __init__(self, runs: Mapping[str, SuiteRun], plans: Mapping[str, Plan], results: str):
        first = next(iter(plans.values()))
        super().__init__(first.config | {"results": results}, first.scripts)
        self._suite_runs, self._plans = runs, plans

    @cached_property
    def rows(self) -> dict[str, list[str]]:
        """The names of the runs of each row that has several comparable ones, by folder name."""
        rows: dict[str, list[str]] = {}
        for name, run in self._suite_runs.items():
            rows.setdefault(folder_name(run.row), []).append(name)
        return {row: names for row, names in rows.items() if self._are_comparable(names)}

    def _are_comparable(self, names: list[str]) -> bool:
        runs = [self._plans[name].run for name in names]
        keys = (*COMPARED, "seed", "seeds", "unit")
        kinds = {canonical([run.value(key) for key in keys]) for run in runs}
        has_own_seeds = any(run.policy in RECORDED or run.select is not None for run in runs)
        return len(runs) > 1 and len(kinds) == 1 and not has_own_seeds

    def spec(self, stage: str, wildcards: Mapping[str, str]) -> str:
        """Return the canonical JSON of a job's spec, as `Plan.spec`."""
        digests = "".join(plan.digest(maker) for plan, maker in self._makers(stage, wildcards))
        config: dict = {"runs_digest": hashlib.sha256(digests.encode()).hexdigest()}
        if stage == "compare":
            sides = [[self._side(name), name] for name in self.rows[wildcards["row"]]]
            config |= {"compare": sides, "view_encoder": self.run.value("view_encoder")}
        elif stage == "verify":  # a new spec each time, as in `Plan`
            config = {"lists": self._lists(), "asked": time.time_ns()}
        else:
            config["runs"] = [
                [n, run.row, run.column, run.training_seed, self._plans[n].digest("episodes")]
                for n, run in self._suite_runs.items()
            ]
            config["is_checkpoints"] = all(run.is_checkpoint for run in self._suite_runs.values())
        made = {"stage": stage, "config": config, "tools": self.versions(stage), "shard": {}}
        made |= {"files": self._watched_files(stage)} if stage == "index" else {}
        return canonical(made | {"code": fingerprint(self.scripts / f"{stage}.py")})

    def _lists(self) -> dict[str, str]:
        """Return the digest of the spec of each list of checksums, by its path in the results."""
        return {
            _in_row(STAGES[stage].paths[-1], row): parse_spec(self.spec(stage, {"row": row})).digest
            for stage, row in [("index", ""), *(("compare", row) for row in self.rows)]
        }

    def _side(self, name: str) -> str:
        run = self._suite_runs[name]
        return " ".join(filter(None, (run.column, run.training_seed)))

    def inputs(self, stage: str) -> dict[str, Callable[[Mapping], list[str]]]:
        """Return a function of the wildcards that returns the files of runs, and comparisons."""

        def files(wildcards: Mapping) -> list[str]:
            makers = self._makers(stage, wildcards)
            made = [file for plan, maker in makers for file in plan.files(maker)]
            page = self.files("index") if stage == "verify" else []
            return [*made, *page, *(self.comparisons if stage != "compare" else [])]

        return {"runs": files}

    def _makers(self, stage: str, wildcards: Mapping) -> Iterator[tuple[Plan, str]]:
        """Yield the plan and the stage that make the files that a job reads."""
        for name in self.rows[wildcards["row"]] if stage == "compare" else self._plans:
            plan = self._plans[name]
            yield from ((plan, maker) for maker in _READ.get(stage, ()) if maker in plan.stages)

    @property
    def comparisons(self) -> list[str]:
        """The files of the comparisons of all rows."""
        paths = [output.path for output in STAGES["compare"].present(self.run).values()]
        return [f"{self.results}/{_in_row(path, row)}" for row in self.rows for path in paths]

    def outputs(self, stage: str, folder: str) -> dict[str, object]:
        """Return the outputs as Snakemake's rule takes them, with the wildcard `row`."""
        made = super().outputs(stage, folder)
        if stage == "compare":
            made = {option: _in_row(path, "{row}") for option, path in made.items()}
        return made


def _in_row(path: str, row: str) -> str:
    """Return the path of a comparison's file, in a folder of its row."""
    return re.sub(r"compare/([^/]+)$", rf"compare/{row}/\1", path)
