"""What the Snakefile calls: the plan of a run before it, its summary or its causes after it.

This module, object_storage and job_events alone know that they run inside Snakemake.
"""

import atexit
import contextlib
import fcntl
import gc
import hashlib
import importlib.util
import json
import logging
import os
import shlex
import socket
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import yaml
from platformdirs import user_cache_path

from goalreel.cli import note_results
from goalreel.errors import GoalreelError
from goalreel.files.atomic import replacing
from goalreel.policies.policy_dependencies import policy_files
from goalreel.provenance.checksums import STAMP, SUMS, read_sums
from goalreel.provenance.fingerprint import note_sources, remember_trees, sources_as_noted
from goalreel.provenance.spec import canonical
from goalreel.verification.preflight import is_known_to_play, play_first_steps
from goalreel.workflow.config import film_fps, load_config
from goalreel.workflow.failure_summary import failure_summary
from goalreel.workflow.job_events import JobEvents, is_plan, print_only
from goalreel.workflow.object_storage import (
    check_sources,
    fetch_logs,
    stored_summary,
    with_addresses,
)
from goalreel.workflow.plan import Plan
from goalreel.workflow.run_summary import run_summary
from goalreel.workflow.stages import APART, FILM, STAGES, VIEWS

_STARTED = time.time()
_NO_LIMIT = 1_000_000  # jobs in a timespan, as the profiles have it
_EVENTS: list = []  # of this run: one, or none where hooks are off
_ENDS: list = []  # what ends its line, likewise
_LOCKS: list = []  # of this process, held until it ends
# Of each results folder that this process plans: a digest of the configuration, and what the run's
# first steps have shown. Several modules of one workflow may plan one each.
_PLANS = "GOALREEL_PLANS"
_SHARD_SECONDS = 60  # that an interrupted job may lose
RUN_FILE = "config.yaml"  # in the results
_CHANGED = "has changed since the run that submitted this job began; run snakemake again"
_SOURCES = ("scripts", "envs", "docs", "tests", "profiles", "benchmarks", "examples")
_SOURCES += (".git", ".github", ".ci", "config", "workflow")


def plan_run(workflow, base: str, config: Mapping) -> Plan:
    """Return the plan of a run for what the user configured, or end the run with one message.

    The rules' commands find Snakemake's own `python` afterwards, so that `.venv/bin/snakemake`
    works without an activated environment; a conda environment, which Snakemake activates later,
    still comes first.

    Args:
        workflow: Snakemake's.
        base: the workflow's folder.
        config: what the user gave, without the defaults.
    """
    scripts = Path(base, "scripts")
    print_only(workflow, is_plan)
    try:
        complete = load_config(config)
        check_results(complete["results"], Path(base))
        if not (workflow.remote_exec or workflow.subprocess_exec):
            check_same_run(complete, sys.argv[1:])
            if any(word.startswith("--delete-") for word in sys.argv):
                _lock(Path(complete["results"]))
        plan = _plan(complete, config, scripts, workflow)
    except GoalreelError as error:
        sys.exit(f"goalreel: {error}")
    # Where pandas is installed, Snakemake imports it to look for data frames among the jobs'
    # parameters (persistence, 9.27). Here they are texts. It saves 0.4 s of a run of 2 reaches.
    sys.modules.setdefault("pandas", None)
    # What is imported stays until the end, so the garbage collector need not look through it, nor
    # once more when Python ends. It saves 0.3 s of a dry run.
    gc.freeze()
    folder = str(Path(sys.executable).parent)
    os.environ["PATH"] = os.pathsep.join([folder, os.environ.get("PATH", "")])
    note_results(Path(complete["results"]))
    remember_trees(user_cache_path("goalreel"))
    named = workflow.modifier.modify_rulename  # a module of another workflow may have a prefix
    workflow.localrules(*map(named, plan.local_rules))
    # A cluster's job has its node's cores already: its process runs the commands itself, where the
    # SLURM plugin (2.8) would start srun and one more Snakemake for each, 12 for a group of four
    # shards. Of an array's tasks the plugin must choose the command.
    if workflow.remote_exec and "SLURM_ARRAY_TASK_ID" not in os.environ:
        workflow.localrules(*map(named, plan.stages))
    return plan


def describe_rules(workflow) -> None:
    """Give each stage's rule its purpose, which `snakemake --list` shows."""
    purposes = {workflow.modifier.modify_rulename(n): s.purpose for n, s in STAGES.items()}
    for rule in workflow.rules:
        rule.docstring = rule.docstring or purposes.get(rule.name)


def _plan(config: Mapping, given: Mapping, scripts: Path, workflow) -> Plan:
    """Return the plan of a checked configuration, with what the run's first steps show.

    A job reads the workflow again. It takes what the submitting process has found, and ends where
    it finds other code or options than that planned with: its result would be made by others than
    the run records of it.
    """
    folder = str(Path(config["results"]).resolve())
    plans, is_job = json.loads(os.environ.get(_PLANS, "{}")), workflow.remote_exec
    planned = hashlib.sha256(canonical(config).encode()).hexdigest()
    before = plans.get(folder)
    if is_job and sources_as_noted(scripts) is False:
        sys.exit(f"goalreel: the code of {scripts} {_CHANGED}")
    if is_job and before and before["config"] != planned:
        sys.exit(f"goalreel: the configuration {_CHANGED}")
    if before and (is_job or workflow.subprocess_exec):
        found = before["found"]
    else:
        plan = Plan(config, scripts)
        _check_targets(plan, sys.argv[1:])
        found = {} if is_job or workflow.subprocess_exec else _findings(plan, given, scripts)
    note_sources(scripts)
    os.environ[_PLANS] = json.dumps(plans | {folder: {"config": planned, "found": found}})
    return Plan(config | found, scripts) if found or before else plan


def _check_targets(plan: Plan, words: Sequence[str]) -> None:
    """Raise GoalreelError if a command line names a stage that the run does not have."""
    config, policy = plan.config, plan.run.policy
    for word in words:
        if word in STAGES and word not in plan.stages:
            raise GoalreelError(
                f"{word}: cannot be made of {config['env']} with the policy {policy}. It needs "
                f"{STAGES[word].needs}."
            )


def _findings(plan: Plan, given: Mapping, scripts: Path) -> dict:
    """Return the options that a run's first steps set.

    The files that the policy opens are among `policy.files`; where the user sets none, a shard is
    no longer than a job of a minute, and the frame rate is the environment's own.
    """
    found, config = {}, plan.config
    if _is_apart(sys.argv[1:]) or is_known_to_play(config):
        return found
    policy, kept = config["policy"], user_cache_path("goalreel") / "preflight"
    shown = play_first_steps(config, plan.digest("simulate"), scripts, kept)
    if opened := shown.get("files"):
        found["policy"] = dict(policy) | {"files": list(dict.fromkeys([*policy["files"], *opened]))}
    if given.get("shard_size") is None:
        most = int(_SHARD_SECONDS / max(shown.get("episode_s", 0), 1e-9))
        size = max(min(config["shard_size"], most), 1)
        found["shard_size"] = _size_before(config) or size
    if shown.get("fps") and (given.get("film") or {}).get("fps") is None:
        found["film"] = config["film"] | {"fps": film_fps(shown["fps"])}
    return found


def _size_before(config: Mapping) -> int | None:
    """Return the size of the shards that a run of the same kind has left in the results."""
    try:
        before = yaml.safe_load((Path(config["results"]) / RUN_FILE).read_text(encoding="utf-8"))
        return before["shard_size"] if _played(before) == _played(config) else None
    except (OSError, yaml.YAMLError, LookupError, TypeError):
        return None


def _is_apart(words: Sequence[str]) -> bool:
    """Return whether a command line names targets, and none that is made of the run's policy."""
    targets = {word for word in words if word in (*STAGES, "all")}
    return bool(targets) and targets <= APART


def check_results(results: str, base: Path) -> None:
    """Raise GoalreelError if the results would stand among the workflow's own files, or on a file.

    An address is refused too: Snakemake would make a folder of that name.
    A view's folder is emptied before it is made: `results: docs` would cost docs/report.
    """
    place, base = Path(results).resolve(), base.resolve()
    if "://" in results:
        raise GoalreelError(
            f"the configuration has an error:\n  results: '{results}' is an address, not a folder; "
            f"for object storage keep the folder and give snakemake --default-storage-provider "
            f"and --default-storage-prefix (docs/object-storage.md)"
        )
    if place == base or any(place.is_relative_to(base / name) for name in _SOURCES):
        error = "is where the workflow's own files stand"
    elif place.exists() and not place.is_dir():
        error = "is a file"
    else:
        return
    raise GoalreelError(
        f"the configuration has an error:\n  results: '{results}' {error}; choose another folder"
    )


def check_same_run(config: Mapping, words: Sequence[str]) -> None:
    """Raise GoalreelError if the results hold a run of another environment or policy.

    Without a finished trajectory they hold no run.

    Args:
        config: the complete configuration.
        words: the command line, which may name views.
    """
    results = Path(config["results"])
    if _is_apart(words) or not any(results.glob("trajectories/*.npz")):
        return
    try:
        before = yaml.safe_load((results / RUN_FILE).read_text(encoding="utf-8"))
        then, now = _played(before), _played(config)
    except (OSError, yaml.YAMLError, LookupError, TypeError):
        return  # nothing tells of a run before
    if then == now:
        return
    differs = next(new for old, new in zip(then, now, strict=True) if old != new)
    other = shlex.quote(f"{results}-{Path(differs.rpartition(':')[2]).stem}")
    folder = shlex.quote(str(results))
    views = "".join(f" {word}" for word in words if word in STAGES)
    raise GoalreelError(
        f"results: {str(results)!r} already holds a {then[0]} run of the policy {then[1]}. "
        f"Choose another folder: results={other}\n"
        f"  To replace it: rm -r {folder}\n"
        f"  To go on with it: snakemake{views} --configfile {folder}/{RUN_FILE}"
    )


def _lock(results: Path) -> None:
    """Hold the results for this process alone; raise GoalreelError if another one does.

    Snakemake's own lock is in the folder where it runs, so that of two such folders neither knows
    of the other.
    """
    path = results / "logs" / "run.lock"
    with contextlib.suppress(OSError):  # who cannot write there is told by the first job
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.open("a+", encoding="utf-8")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise GoalreelError(
                f"{results}: another run is at work in it ({lock.read().strip()}); wait for its "
                f"end, or give this one its own folder: --config results=FOLDER"
            ) from None
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {socket.gethostname()}, started in {Path.cwd()}\n")
        lock.flush()
        _LOCKS.append(lock)


def _check_folders(jobs: Iterable) -> None:
    """Raise GoalreelError if a job would remove a user's files with the folder that it makes anew.

    A folder that is made as a whole lists its own files.
    """
    for folder in (Path(output) for job in jobs for output in job.output):
        if not (folder / SUMS).is_file():
            continue
        try:
            own = {*read_sums(folder / SUMS), folder / SUMS, folder / STAMP}
        except GoalreelError:
            continue  # a damaged list, which is made anew
        others = sorted(str(path) for path in folder.rglob("*") if path.is_file())
        if others := [name for name in others if Path(name) not in own]:
            named = ", ".join(others[:3]) + (f" and {len(others) - 3} more" * (len(others) > 3))
            raise GoalreelError(
                f"{folder} is to be made anew, and it holds what is not of this workflow: {named}; "
                f"move that elsewhere"
            )


def _played(config: Mapping) -> tuple[str, str]:
    """Return a run's environment, and its policy: the file or dataset, or else the name."""
    policy = config["policy"]
    return config["env"], policy.get("file") or policy.get("dataset") or policy["name"]


def _write_run_file(config: Mapping) -> None:
    """Leave the complete configuration in the results, for views of the same run."""
    path = Path(config["results"]) / RUN_FILE
    head = "# All options of the run that made these results. A view of it:\n"
    head += f"#     snakemake clips --configfile {shlex.quote(path.as_posix())}\n"
    text = yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True)
    # Who cannot write there is told by the first job, or only makes what is there already.
    with contextlib.suppress(OSError), replacing(path) as temporary:
        temporary.write_text(head + text, encoding="utf-8")


def start_run(plan: Plan, workflow) -> None:
    """Check that the jobs will find their files, and listen to what happens to them."""
    scripts, policy = plan.scripts, policy_files(plan.config["policy"])
    programs = [*scripts.rglob("*.py"), *scripts.glob("goalreel/report/templates/*")]
    jobs = list(workflow.dag.needrun_jobs())
    try:
        check_sources(workflow, [*sorted(programs), *map(Path, policy)])
        _lock(Path(plan.config["results"]))
        _check_folders(jobs)
    except GoalreelError as error:
        sys.exit(f"goalreel: {error}")
    rules = {job.rule.name for job in jobs}
    if "lerobot" in rules and importlib.util.find_spec("pyarrow") is None:
        sys.exit(
            f"goalreel: lerobot: the package pyarrow is not installed for {sys.executable}. "
            "Type: pip install pyarrow"
        )
    views = sorted(rule for rule in rules.intersection(VIEWS) if STAGES[rule].summary)
    if "verify" in rules and views:
        sys.exit(f"goalreel: verify looks at what is there: make {', '.join(views)} first")
    if not rules <= APART:
        _write_run_file(plan.config)
    limit = workflow.scheduling_settings.max_jobs_per_timespan
    if limit is not None and limit.max_jobs >= _NO_LIMIT:
        # Else each look for jobs leaves a thread that looks again a timespan later.
        workflow.scheduler.job_rate_limiter = None
    # Its handler of SIGTERM takes this lock in the thread that may hold it, and would wait for ever
    # (job_scheduler.py, 9.27).
    workflow.scheduler._lock = threading.RLock()
    _listen(plan, workflow, jobs)


def _listen(plan: Plan, workflow, jobs: Iterable) -> None:
    """Take note of what happens to the jobs, and print how far the shards are."""
    if workflow.touch:  # a job that only touches its files keeps its log
        return
    logs, sizes, planned = workflow.logger_manager, plan.shard_sizes, dict.fromkeys(FILM, 0)
    for job in jobs:
        if job.rule.name in FILM and "shard" in job.wildcards_dict:
            planned[job.rule.name] += sizes[job.wildcards_dict["shard"]]
    planned = {stage: number for stage, number in planned.items() if number}
    at_close = partial(print_causes, workflow)
    events = JobEvents(sizes, planned, plan.run.unit, at_close)
    _EVENTS.append(events)
    logs.logger.addHandler(events)
    # Once jobs run, errors are `print_causes`'s.
    print_only(workflow, lambda record: record.levelno == logging.WARNING)
    if not (logs.settings.verbose or logs.settings.quiet):
        _ENDS.append(events.start_line())


def print_summary(plan: Plan, workflow) -> None:
    """Print what this run made: the film, if it made it, and the views."""
    _end_waits()
    _EVENTS.clear()
    try:
        _print_last(stored_summary(workflow) or run_summary(plan, _STARTED))
    except (GoalreelError, OSError) as error:
        _print_last(f"no summary: {error}")


def print_causes(workflow) -> None:
    """Print, once, which jobs failed and why.

    Snakemake calls no hook when it leaves a run by an exception, as it does with --keep-going at a
    job whose input another job has refused; the events, which it closes, call this then.
    """
    _end_waits()
    for events in _EVENTS:
        failed = list(events.failed.values())
        fetch_logs(workflow, failed)
        jobs = sum(1 for _ in workflow.dag.needrun_jobs(exclude_finished=False))
        text = failure_summary(failed, events.messages, events.done, jobs)
        _print_last(
            f"{with_addresses(workflow, text, failed)}\nRun the same command again to continue. "
            f"Snakemake's log: {', '.join(workflow.logger_manager.get_logfile())}"
        )
    _EVENTS.clear()


def _end_waits() -> None:
    """Let the process end as soon as Snakemake has ended; no job is left here.

    Where the user limits max-jobs-per-timespan, its scheduler sets a timer whenever it starts a
    job, to look for more a timespan later (job_scheduler.py, 9.27), and nothing cancels them. The
    other wait is Python's own, see `plan_run`.
    """
    while _ENDS:
        _ENDS.pop()()
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()
    gc.freeze()


def _print_last(text: str) -> None:
    """Print once Snakemake has said all that it says, so that this is what is seen first."""
    if text:
        atexit.register(print, text, file=sys.stderr)
