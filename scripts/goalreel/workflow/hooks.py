"""What the Snakefile needs of Python besides the specs: config in, summary and causes out.

This module and watch alone know that they run inside Snakemake.
"""

import atexit
import gc
import hashlib
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from functools import partial, wraps
from pathlib import Path

from goalreel.cli import note_results
from goalreel.encoding.choice import Choice
from goalreel.errors import GoalreelError
from goalreel.provenance.sources import differ_from_noted, note_sources
from goalreel.provenance.spec import canonical
from goalreel.workflow.config import load_config
from goalreel.workflow.object_storage import (
    check_sources,
    made_in_storage,
    stored_summary,
    told_of_storage,
    with_stored_logs,
)
from goalreel.workflow.run_summary import VIEWS, summary, views
from goalreel.workflow.specs import Specs

_STARTED = time.time()
_WATCHES: list = []  # of this run: one, or none where hooks are off
_CONFIG = "GOALREEL_CONFIG"
_CHANGED = "has changed since the run that submitted this job began; run snakemake again"
_SOURCES = ("scripts", "rules", "envs", "docs", "tests", "profiles", "benchmarks", ".git", ".ci")


def _ending(method: Callable) -> Callable:
    """Return a method that ends the run with one message where `method` raises GoalreelError."""

    @wraps(method)
    def told(*arguments):
        try:
            return method(*arguments)
        except GoalreelError as error:
            sys.exit(f"goalreel: {error}")

    return told


class Plan(Specs):
    """The specs as the rules ask for them.

    What keeps one from being told, an ffmpeg that does not run or a module that is no Python, ends
    the run with one message: as an exception it would come with Snakemake's traceback.
    """

    _of_shard, _part = _ending(Specs._of_shard), _ending(Specs._part)
    _spec, report = _ending(Specs._spec), _ending(Specs.report)
    pixels = _ending(Specs.pixels)
    dqn, training_table = _ending(Specs.dqn), _ending(Specs.training_table)


def checked_config(given: Mapping, schema: str) -> dict:
    """Return the complete configuration, or end the run with one message."""
    try:
        config = load_config(given, Path(schema))
        check_results(config["results"], Path(schema).parent)
    except GoalreelError as error:
        sys.exit(f"goalreel: {error}")
    return config


def check_results(results: str, base: Path) -> None:
    """Raise GoalreelError if the results would stand among the workflow's own files, or on a file.

    An address is refused too: Snakemake would make a folder of that name.
    A view's folder is emptied before it is made: `results: docs` would cost docs/report.
    """
    place, base = Path(results).resolve(), base.resolve()
    if "://" in results:
        raise GoalreelError(
            f"the configuration has a fault:\n  results: '{results}' is an address, not a folder; "
            f"for object storage keep the folder and give snakemake --default-storage-provider "
            f"and --default-storage-prefix (README, Object storage)"
        )
    if place == base or any(place.is_relative_to(base / name) for name in _SOURCES):
        fault = "is where the workflow's own files stand"
    elif place.exists() and not place.is_dir():
        fault = "is a file"
    else:
        return
    raise GoalreelError(
        f"the configuration has a fault:\n  results: '{results}' {fault}; choose another folder"
    )


def set_environment(scripts: str, config: Mapping, job: bool) -> None:
    """Let the rules' commands find the stages' programs in $SCRIPTS, and Snakemake's own `python`.

    `.venv/bin/snakemake` works without an activated environment then; a conda environment, which
    Snakemake activates later, still comes first.
    """
    # Where pandas is installed, Snakemake imports it, which takes a third of a second, to look for
    # data frames among the jobs' parameters (persistence, 9.27). Here they are texts.
    sys.modules.setdefault("pandas", None)
    # What is imported stays until the end. The garbage collector need not look through it at every
    # turn, nor once more when Python ends, which takes a quarter of a second.
    gc.freeze()
    folder = str(Path(sys.executable).parent)
    os.environ["PATH"] = os.pathsep.join([folder, os.environ.get("PATH", "")])
    os.environ["SCRIPTS"] = scripts
    _note_plan(Path(scripts), config, job)
    note_results(Path(config["results"]))
    # Nothing is written beside the sources, where many nodes may read them at the same time.
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


def check_start(workflow, scripts: str, config: Mapping) -> None:
    """End a run whose jobs would not find the workflow's own files, or the user's policy."""
    folder, policy = Path(scripts), config["policy"].get("file")
    programs = [*folder.rglob("*.py"), *folder.glob("goalreel/report/templates/*")]
    needed = [folder.parent / "config.schema.yaml", *sorted(programs)]
    try:
        check_sources(workflow, [*needed, *([Path(policy)] if policy else [])])
    except GoalreelError as error:
        sys.exit(f"goalreel: {error}")


def _note_plan(scripts: Path, config: Mapping, job: bool) -> None:
    """Tell a cluster's jobs what this process plans with; end a job that finds something else.

    A job reads the workflow again: after an edit since it was submitted, its result would be made
    by other code or options than the submitting run records of it.
    """
    planned = hashlib.sha256(canonical(config).encode()).hexdigest()
    if job and differ_from_noted(scripts):
        sys.exit(f"goalreel: the code of {scripts} {_CHANGED}")
    if job and os.environ.get(_CONFIG, planned) != planned:
        sys.exit(f"goalreel: the configuration {_CHANGED}")
    note_sources(scripts)
    os.environ[_CONFIG] = planned


def print_summary(results: str, shards: Iterable[str], encoder: Choice, workflow) -> None:
    """Print what this run made: the film, if it made it, and the views.

    workflow: Snakemake's. Of results on object storage it tells the addresses.
    """
    _end_waits()
    _print_last(stored_summary(made_in_storage(workflow)))
    film, table = Path(results, "film.mp4"), Path(results, "episodes.csv")
    try:
        for log in [log for watch in _WATCHES for log in watch.logs.get("verify", [])]:
            _print_last(Path(log).read_text(encoding="utf-8").rstrip())
        if film.is_file() and table.is_file() and film.stat().st_mtime >= _STARTED:
            _print_last(summary(results, shards, encoder))
        _print_last(views(results, _STARTED))
    except (GoalreelError, OSError) as error:
        _print_last(f"no summary: {error}")
    _WATCHES.clear()


def watch_run(workflow) -> None:
    """Begin to take note of what happens to the jobs of a run; `workflow` is Snakemake's."""
    from goalreel.workflow.job_events import Watch
    from goalreel.workflow.progress_bar import show_bar

    jobs = Counter(job.rule.name for job in workflow.dag.needrun_jobs())
    _check_company(jobs.keys())
    watch = Watch(jobs, at_close=partial(print_causes, workflow))
    _WATCHES.append(watch)
    workflow.logger_manager.logger.addHandler(watch)
    show_bar(workflow.logger_manager.get_log_handlers(), watch)


def _check_company(rules: Set[str]) -> None:
    """End a run that would verify views while it makes them."""
    views = sorted(({*VIEWS, "plots"} - {"films"}) & rules)
    if "verify" in rules and views:
        sys.exit(f"goalreel: verify looks at what is there: ask for {', '.join(views)} first")


def print_causes(workflow) -> None:
    """Print, once, which jobs failed, why, and the command that goes on; `workflow` is Snakemake's.

    Snakemake calls no hook when it leaves a run by an exception, as it does with --keep-going at a
    job whose input another job has refused; the watch, which it closes, calls this then.
    """
    from goalreel.workflow.failure_summary import command_to_go_on, failure_summary, targets_of

    _end_waits()
    for watch in _WATCHES:
        done, jobs = sum(watch.done.values()), sum(watch.planned.values())
        failures = [with_stored_logs(workflow, failure) for failure in watch.failures]
        told = failure_summary(failures, watch.messages, done, jobs)
        told = told_of_storage(workflow, told)
        targets = targets_of(watch.failures)
        what = "to make them again" if targets else "to go on"
        _print_last(f"{told}\n{what}: {command_to_go_on(targets)}")
    _WATCHES.clear()


def _end_waits() -> None:
    """Let the process end as soon as Snakemake has ended; no job is left here.

    Its scheduler sets a timer whenever it starts a job, to look for more a timespan later
    (job_scheduler.py, 9.27: max-jobs-per-timespan, a minute in the profiles), and nothing cancels
    them: after a short last job a run would sit idle for so long. The other wait is Python's own,
    see `set_environment`.
    """
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()
    gc.freeze()


def _print_last(text: str) -> None:
    """Print once Snakemake has said all that it says, so that this is what is seen first."""
    if text:
        atexit.register(print, text, file=sys.stderr)
