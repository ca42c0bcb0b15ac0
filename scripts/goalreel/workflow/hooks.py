"""The functions that the Snakefile calls: they plan a run, and print its summary or its errors."""

import atexit
import gc
import hashlib
import itertools
import json
import logging
import os
import sys
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from platformdirs import user_cache_path

from goalreel.cli import PLANS, plans
from goalreel.errors import FORMER_NAMES, GoalreelError, suggest
from goalreel.policies.policy_dependencies import policy_files
from goalreel.provenance.fingerprint import remember_trees, sources_as_noted, sources_hash
from goalreel.provenance.spec import canonical
from goalreel.verification.preflight import (
    is_known_to_play,
    play_first_steps,
    read_first_steps,
)
from goalreel.workflow.config import check_environment, read_config, with_own_fps
from goalreel.workflow.job_events import (
    JobEvents,
    failure_summary,
    fetch_logs,
    run_summary,
    with_addresses,
)
from goalreel.workflow.plan import Plan
from goalreel.workflow.run_checks import (
    check_folders,
    check_results,
    check_same_run,
    check_sources,
    is_apart,
    lock_results,
    size_before,
    write_run_file,
)
from goalreel.workflow.stages import APART, STAGES, VIEWS

_NO_LIMIT = 1_000_000  # jobs per timespan, as in the profiles
_EVENTS: list[JobEvents] = []  # of this run; empty if hooks are off
_SHARD_SECONDS = 60  # the time that an interrupted job may lose
_HIDDEN = ("job_info", "workflow_started")  # Snakemake's records about the plan
_CHANGED = "changed after the run started."


def plan_run(workflow, base: str, config: Mapping) -> Plan:
    """Return the plan of a run, or exit with a message if its configuration is wrong.

    Args:
        workflow: Snakemake's object.
        base: the workflow's folder.
        config: the user's options, without the defaults.
    """
    scripts = Path(base, "scripts")
    _print_only(workflow, lambda record: getattr(record, "event", None) not in _HIDDEN)
    remember_trees(user_cache_path("goalreel"))
    try:
        complete = read_config(config)
        check_results(complete["results"], Path(base))
        if not (workflow.remote_exec or workflow.subprocess_exec):
            check_same_run(complete, sys.argv[1:])
            if any(word.startswith("--delete-") for word in sys.argv):
                lock_results(Path(complete["results"]))
        plan = _plan(complete, config, scripts, workflow)
    except GoalreelError as error:
        sys.exit(f"goalreel: {error}")
    # Snakemake (9.27) would import pandas to look for data frames among the jobs' parameters. All
    # of ours are strings. This saves 0.4 s of a run of 2 reaches.
    sys.modules.setdefault("pandas", None)
    # Imported modules stay until the end, so the garbage collector can skip them. This saves 0.3 s
    # of a dry run.
    gc.freeze()
    # The rules' commands find Snakemake's own `python` if no environment is activated. A conda
    # environment, which Snakemake activates later, comes first.
    folder = str(Path(sys.executable).parent)
    os.environ["PATH"] = os.pathsep.join([folder, os.environ.get("PATH", "")])
    named = workflow.modifier.modify_rulename  # another workflow's module may add a prefix
    small = (stage for stage in plan.stages if STAGES[stage].local)
    workflow.localrules(*map(named, ("all", "compare_training", *small)))
    # A cluster job already has its cores, so its process runs the commands itself. The SLURM plugin
    # (2.8) would start srun and another Snakemake for each, 12 for a group of four shards. In an
    # array job the plugin must choose the command.
    if workflow.remote_exec and "SLURM_ARRAY_TASK_ID" not in os.environ:
        workflow.localrules(*map(named, plan.stages))
    return plan


def register(plan: Plan, workflow) -> None:
    """Set the docstring of each rule, and the functions at a run's start and end."""
    purposes = {workflow.modifier.modify_rulename(n): s.purpose for n, s in STAGES.items()}
    for rule in workflow.rules:
        rule.docstring = rule.docstring or purposes.get(rule.name)
    workflow.onstart(lambda log: _start_run(plan, workflow))
    workflow.onsuccess(lambda log: _print_summary(plan, workflow))
    workflow.onerror(lambda log: _print_causes(workflow))


def _plan(config: Mapping, given: Mapping, scripts: Path, workflow) -> Plan:
    """Return the plan of a checked configuration, with the options that the first steps set.

    A job parses the workflow again. It takes these options from the process that submitted it, and
    exits if the code or the configuration changed meanwhile, because its file would carry the wrong
    spec. Several modules of one workflow may each plan a results folder.
    """
    folder = str(Path(config["results"]).resolve())
    noted, is_job = plans(), workflow.remote_exec
    planned = hashlib.sha256(canonical(config).encode()).hexdigest()
    before = noted.get(folder)
    if is_job and sources_as_noted(scripts) is False:
        sys.exit(f"goalreel: {scripts}: The code {_CHANGED}")
    if is_job and before and before["config"] != planned:
        sys.exit(f"goalreel: The configuration {_CHANGED}")
    if before and (is_job or workflow.subprocess_exec):
        found = before["found"]
    else:
        plan = Plan(config, scripts)
        _check_targets(plan, sys.argv[1:])
        found = {} if is_job or workflow.subprocess_exec else _findings(plan, given, scripts)
    noted[folder] = {"config": planned, "found": found, "sources": sources_hash(scripts)}
    os.environ[PLANS] = json.dumps(noted)
    return Plan(config | found, scripts) if found or before else plan


def _check_targets(plan: Plan, words: Sequence[str]) -> None:
    """Raise GoalreelError if the command line names a target that the run does not have."""
    config, policy = plan.config, plan.run.policy
    targets = {"all", *APART, *STAGES}
    for before, word in itertools.pairwise(("", *words)):
        # The word after an option may be its value, such as a folder.
        is_unknown = word not in targets and not before.startswith("-")
        if is_unknown and FORMER_NAMES.get(word) in targets:
            raise GoalreelError(f"{word}: Unknown target. {suggest(word, targets)}")
        if word in STAGES and word not in plan.stages:
            raise GoalreelError(
                f"{word}: Cannot be made of {config['env']} with the policy {policy}. It needs "
                f"{STAGES[word].needs}."
            )


def _findings(plan: Plan, given: Mapping, scripts: Path) -> dict:
    """Return the options that a run's first steps set.

    `policy.extra_files` gets the files that the policy opens. Unless the user sets them,
    `shard_size` keeps a job below a minute, and `film.fps` is the environment's own. If the first
    steps of such a run are known, the environment is not imported.
    """
    config, policy = plan.config, plan.config["policy"]
    if is_apart(sys.argv[1:]) or is_known_to_play(config):
        check_environment(config)
        return {"film": with_own_fps(given, config)}
    record = user_cache_path("goalreel") / "preflight" / f"{plan.digest('simulate')}.json"
    shown = read_first_steps(record)
    if shown is None:
        check_environment(config)
        shown = play_first_steps(config, scripts, record)
    found = {"film": with_own_fps(given, config, shown.get("render_fps"))}
    if opened := shown.get("files"):
        files = list(dict.fromkeys([*policy["extra_files"], *opened]))
        found["policy"] = dict(policy) | {"extra_files": files}
    if given.get("shard_size") is None:
        most = int(_SHARD_SECONDS / max(shown.get("episode_s", 0), 1e-9))
        size = max(min(config["shard_size"], most), 1)
        found["shard_size"] = size_before(config) or size
    return found


def _start_run(plan: Plan, workflow) -> None:
    """Check that the jobs will find their files, and start to record their events."""
    scripts, policy = plan.scripts, policy_files(plan.config["policy"])
    programs = [*scripts.rglob("*.py"), *scripts.glob("goalreel/report/templates/*")]
    jobs = list(workflow.dag.needrun_jobs())
    rules = Counter(job.rule.name for job in jobs)
    try:
        check_sources(workflow, [*sorted(programs), *map(Path, policy)])
        lock_results(Path(plan.results))
        check_folders(jobs)
        if "verify" in rules and (views := sorted(rules.keys() & VIEWS)):
            made = ", ".join(views)
            raise GoalreelError(f"verify: Checks only existing files. Make {made} first.")
    except GoalreelError as error:
        sys.exit(f"goalreel: {error}")
    if not rules.keys() <= APART:
        write_run_file(plan.config)
    limit = workflow.scheduling_settings.max_jobs_per_timespan
    if limit is not None and limit.max_jobs >= _NO_LIMIT:
        # The limiter would start a thread whenever the scheduler looks for jobs.
        workflow.scheduler.job_rate_limiter = None
    # The scheduler's SIGTERM handler acquires this lock in the thread that may already hold it
    # (job_scheduler.py, 9.27), so a plain lock would deadlock.
    workflow.scheduler._lock = threading.RLock()
    if workflow.touch:  # a job that only touches its files keeps its log
        return
    # In the order of the stages. Another workflow's module may add a prefix to rule names.
    planned = {rule: rules[rule] for stage in STAGES for rule in rules if rule.endswith(stage)}
    events, logs = JobEvents(planned, partial(_print_causes, workflow)), workflow.logger_manager
    _EVENTS.append(events)
    logs.logger.addHandler(events)
    # From here on `_print_causes` prints the errors.
    _print_only(workflow, lambda record: record.levelno == logging.WARNING)
    if not (logs.settings.verbose or logs.settings.quiet):
        events.start_line()


def _print_summary(plan: Plan, workflow) -> None:
    """Print the files that this run made."""
    for events in _end_waits():
        text = run_summary(events.finished)
        if any(job.rule.endswith("concat") for job in events.finished):
            text += f"\n    encoder  {plan.run.encoder.label}"
        _print_last(with_addresses(workflow, text, set()))


def _print_causes(workflow) -> None:
    """Print once which jobs failed and why.

    Snakemake calls no hook if it ends with an exception, such as with --keep-going after a job has
    rejected its input. It still closes its log handlers, and JobEvents calls this function then.
    """
    for events in _end_waits():
        failed = list(events.failed.values())
        fetch_logs(workflow, failed)
        jobs = sum(1 for _ in workflow.dag.needrun_jobs(exclude_finished=False))
        text = failure_summary(failed, events.messages, len(events.finished), jobs)
        unusable = {path for job in failed for f in job.failures for path in f["unusable"]}
        _print_last(
            f"{with_addresses(workflow, text, unusable)}\nRun the same command again to continue. "
            f"Snakemake's log: {', '.join(workflow.logger_manager.get_logfile())}"
        )


def _end_waits() -> list[JobEvents]:
    """Return the events at the first call, and let the process end without a delay.

    If the user limits max-jobs-per-timespan, the scheduler starts a timer for each job and cancels
    none of them (job_scheduler.py, 9.27). For the garbage collector see `plan_run`.
    """
    ended = _EVENTS.copy()
    _EVENTS.clear()
    for events in ended:
        events.end_line()
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()
    gc.freeze()
    return ended


def _print_only(workflow, is_printed) -> None:
    """Filter the records that Snakemake prints, unless the user passes --verbose."""
    for handler in workflow.logger_manager.logger.handlers:
        if handler.name == "DefaultStreamHandler" and not workflow.logger_manager.settings.verbose:
            handler.addFilter(is_printed)


def _print_last(text: str) -> None:
    """Print a text after all of Snakemake's output."""
    if text:
        atexit.register(print, text, file=sys.stderr)
