"""The jobs of a run and their specs, planned in this process, to find the reruns of an edit fast.

Snakemake reruns a job if its spec differs from that of its last run, and the jobs that take its
result. Their specs also differ, because they hold a digest of the specs of their inputs. A few real
dry runs confirm that specs and Snakemake agree.
"""

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml
from project import REPOSITORY

from goalreel.provenance import fingerprint
from goalreel.workflow import plan as planning
from goalreel.workflow.config import load_config
from goalreel.workflow.plan import Plan
from goalreel.workflow.run import SHARDED
from goalreel.workflow.stages import STAGES

FILM = ("concat", "episodes")
_IN_NO_SPEC = {"plots": "episodes"}  # a rule that reruns after another only because of its files


class Sources:
    """An editable copy of the workflow's programs and configuration, to plan with."""

    def __init__(self, folder: Path, monkeypatch):
        """Copy them to a folder, and let `monkeypatch` point the fingerprint at it."""
        self.folder = folder
        self._unedited: dict[str, dict[tuple, str]] = {}
        for name, function in list(vars(fingerprint).items()):
            if hasattr(function, "cache_clear"):
                monkeypatch.setattr(fingerprint, name, _by_content(function.__wrapped__))
        monkeypatch.setattr(planning, "code_of", planning.code_of.__wrapped__)
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(REPOSITORY / "scripts", folder / "scripts", ignore=ignore)
        shutil.copytree(REPOSITORY / "config", folder / "config")
        shutil.copyfile(REPOSITORY / "config.yaml", folder / "config.yaml")

    @contextmanager
    def edited(self, name: str) -> Iterator[None]:
        """Add a statement to a file of scripts/, or an empty line if it has no statement."""
        path = self.folder / "scripts" / name
        text = path.read_text(encoding="utf-8")
        path.write_text(f"{text}_ = 0\n" if path.suffix == ".py" else f"{text}\n", encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(text, encoding="utf-8")

    def specs(self, config: Mapping, targets: Sequence[str] = FILM) -> dict[tuple, str]:
        """Return the spec of every job of a new run, by rule and wildcards."""
        given = yaml.safe_load((self.folder / "config.yaml").read_text(encoding="utf-8"))
        for key, value in config.items():
            given[key] = given[key] | value if isinstance(value, dict) else value
        complete = load_config(given)
        plan = Plan(complete, self.folder / "scripts")
        found: dict[tuple, str] = {}
        waiting = list(targets)
        while waiting:
            rule = waiting.pop()
            for name in _names(plan, rule):
                if (rule, name) not in found:
                    found[rule, name] = plan.spec(rule, {"shard": name})
                    waiting += plan.makers(rule).values()
        return found

    def reruns(
        self, config: Mapping, edit: Mapping | str, targets: Sequence[str] = FILM
    ) -> dict[str, int]:
        """Return the number of jobs of each rule that rerun after an edit of options or of a file."""
        key = repr((config, targets))
        if key not in self._unedited:
            self._unedited[key] = self.specs(config, targets)
        if isinstance(edit, Mapping):
            return rerun(self._unedited[key], self.specs(config | edit, targets))
        with self.edited(edit):
            return rerun(self._unedited[key], self.specs(config, targets))


def _names(plan: Plan, rule: str) -> list[str]:
    """Return the shards of a rule's jobs, "" for a job of the whole run."""
    scope = STAGES[rule].scope
    return list(plan.shards(scope)) if scope in SHARDED else [""]


def rerun(before: Mapping[tuple, str], after: Mapping[tuple, str]) -> dict[str, int]:
    """Return the number of jobs of each rule that rerun when the specs become `after`."""
    jobs = Counter(rule for rule, name in after if after[rule, name] != before.get((rule, name)))
    for rule, source in _IN_NO_SPEC.items():
        if source in jobs and (rule, "") in after:
            jobs[rule] = 1
    return dict(jobs)


def _by_content(function):
    """Cache a function of a path until the file changes."""
    results = {}

    def call(path, *more):
        content = path.read_bytes() if isinstance(path, Path) else b""
        if (path, content, *more) not in results:
            results[path, content, *more] = function(path, *more)
        return results[path, content, *more]

    return call
