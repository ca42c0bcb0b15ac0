"""The functions that the Snakefile calls: they plan a run, and print its summary or its errors."""

import atexit
import contextlib
import gc
import itertools
import logging
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

from platformdirs import user_cache_path

from goalreel.cli import PLANS, hang_up_as_terminated, packed
from goalreel.cli import plans as noted_plans
from goalreel.errors import GoalreelError, pluralize
from goalreel.provenance.checksums import RUN_FILE
from goalreel.provenance.fingerprint import remember_trees, sources_as_noted, sources_hash
from goalreel.provenance.spec import json_digest
from goalreel.verification.preflight import is_known_to_play, play_first_steps, read_first_steps
from goalreel.workflow import job_events, run_checks
from goalreel.workflow.config import check_environment, locked_options, options_by, read_config
from goalreel.workflow.rules import Plans
from goalreel.workflow.stages import APART, STAGES, VIEWS
from goalreel.workflow.suite import SuiteRun, expand
from goalreel.workflow.suite_plan import SuitePlan

_MOST_ERRORS = 10  # runs of a suite whose errors are printed
_NO_LIMIT = 1_000_000  # jobs per timespan, as in the profiles
_EVENTS: list[job_events.JobEvents] = []  # of this run; empty if hooks are off
_HIDDEN = ("job_info", "workflow_started")  # Snakemake's records about the plan
_CHANGED = "changed after the run started."


def plan_runs(workflow, base: str, config: Mapping) -> Plans:
    """Return the plans of all runs, or exit with a message if a configuration is wrong."""
    scripts, asked = Path(base, "scripts"), _time_of_check(workflow)
    _print_only(workflow, lambda record: getattr(record, "event", None) not in _HIDDEN)
    remember_trees(user_cache_path("goalreel"))
    try:
        run_checks.check_run_files(workflow.overwrite_configfiles)
        _check_single(config, _asked_stages(workflow))
        if asked:
            given = {"check": config.get("check"), **workflow.config_settings.overwrite_config}
            suite_runs = {"": SuiteRun(locked_options(given))}
        else:
            suite_runs = expand(_with_trained_policy(config) if _is_training(workflow) else config)
        runs = _read_runs(suite_runs)
        for options in runs.values():
            run_checks.check_results(options["results"], Path(base))
            if not (asked or _is_job(workflow)):
                if not _is_apart(runs, workflow):
                    run_checks.check_same_run(options, _asked_stages(workflow))
                if any(word.startswith("--delete-") for word in sys.argv):
                    run_checks.lock_results(Path(options["results"]))
        if not _is_job(workflow):
            run_checks.release_lock(_folders(runs))
        plans = _plan(runs, suite_runs, scripts, workflow, asked)
        if not _is_job(workflow) and not _is_apart(runs, workflow):
            for plan in plans.runs.values():
                run_checks.check_network(plan, _asked_stages(workflow))
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
    # A cluster job already has its cores, so its process runs the commands itself. The SLURM plugin
    # (2.8) would start srun and another Snakemake for each, 12 for a group of four shards. In an
    # array job the plugin must choose the command.
    has_cores = workflow.remote_exec and "SLURM_ARRAY_TASK_ID" not in os.environ
    local = (rule.name for rule in plans.rules if has_cores or STAGES[rule.stage].local)
    workflow.localrules(*map(named, ("all", *plans.targets, *local)))
    return plans


def register(plans: Plans, workflow) -> None:
    """Set the docstring of each rule, and the functions at a run's start and end."""
    stages = {rule.name: rule.stage for rule in plans.rules} | {name: name for name in STAGES}
    named = workflow.modifier.modify_rulename
    purposes = {named(rule): STAGES[stage].purpose for rule, stage in stages.items()}
    for rule in workflow.rules:
        rule.docstring = rule.docstring or purposes.get(rule.name)
    shown = {named(rule): named(stage) for rule, stage in stages.items()}
    workflow.onstart(lambda log: _start_run(plans, workflow, shown))
    workflow.onsuccess(lambda log: _print_summary(plans, workflow))
    workflow.onerror(lambda log: _print_causes(plans, workflow))


def _asked_stages(workflow) -> list[str]:
    """Return the stages that the command line names."""
    named = workflow.modifier.modify_rulename  # another workflow's module may add a prefix
    return [stage for stage in STAGES if named(stage) in sys.argv[1:]]


def _is_apart(runs: Mapping, workflow) -> bool:
    """Return whether the command line names only targets that are independent of the policy."""
    targets = {*_asked_stages(workflow)}
    has_film = workflow.modifier.modify_rulename("all") in sys.argv[1:]
    return "" in runs and bool(targets) and targets <= APART and not has_film


def _is_training(workflow) -> bool:
    """Return whether the command line names a target that only a trained policy has."""
    if _is_job(workflow):
        return any(plan["trains"] for plan in noted_plans().values())
    return not {"train", "training_progress"}.isdisjoint(_asked_stages(workflow))


def _with_trained_policy(options: Mapping) -> dict:
    """Return the options with the policy `trained` if they name no policy."""
    policy = options.get("policy") or {}
    is_given = not isinstance(policy, Mapping) or any(
        policy.get(key) not in (None, "null") for key in ("name", "file", "dataset")
    )
    return {**options, "policy": policy if is_given else {**policy, "name": "trained"}}


def _is_job(workflow) -> bool:
    """Return whether this process runs jobs for the one that planned them."""
    return workflow.remote_exec or workflow.subprocess_exec


def _folders(runs: Mapping[str, Mapping]) -> list[Path]:
    """Return the results folders of runs, by name, and the one around those of a suite."""
    folders = [Path(config["results"]) for config in runs.values()]
    return folders if "" in runs else [folders[0].parent, *folders]


def _read_runs(suite_runs: Mapping[str, SuiteRun]) -> dict[str, dict]:
    """Return the complete configuration of each run. Raises GoalreelError with all errors."""
    runs, errors = {}, []
    for name, run in suite_runs.items():
        try:
            with _errors_of(name):
                runs[name] = read_config(run.options)
        except GoalreelError as error:
            if not name:
                raise
            errors.append(str(error))
    if errors:
        summary = f"suite: {len(errors)} of {pluralize(len(suite_runs), 'run')} cannot start:"
        raise GoalreelError("\n  ".join([summary, *errors[:_MOST_ERRORS]]))
    return runs


def _time_of_check(workflow) -> int:
    """Return when `snakemake check` was started, in nanoseconds, 0 for another run."""
    if _is_job(workflow):
        return max((plan["asked"] for plan in noted_plans().values()), default=0)
    return time.time_ns() if "check" in _asked_stages(workflow) else 0


def _check_single(config: Mapping, targets: Sequence[str]) -> None:
    """Raise GoalreelError if the targets `lock` and `check` are used in a suite."""
    for word in {"lock", "check"} & {*targets} if config.get("suite") else ():
        raise GoalreelError(
            f"{word}: Takes one run, not a suite. Choose a run of it: "
            f"snakemake {word} --configfile results/NAME/config.yaml"
        )


def _plan(
    runs: dict[str, dict], suite_runs: dict[str, SuiteRun], scripts: Path, workflow, asked: int
) -> Plans:
    """Return the plans of checked configurations, with the options that the first steps set.

    A job parses the workflow again. It takes these options from the process that submitted it, and
    exits if the code or the configuration changed meanwhile, because its file would carry the wrong
    spec. Several modules of one workflow may each plan a results folder.
    """
    plans, noted, is_job = Plans(runs, suite_runs, scripts, asked), noted_plans(), _is_job(workflow)
    folder = str(Path(plans.results).resolve())
    planned = json_digest(runs)
    # A job on another machine may work in another folder.
    same = (plan for plan in noted.values() if is_job and plan["results"] == plans.results)
    before = noted.get(folder) or next(same, None)
    if workflow.remote_exec and sources_as_noted(scripts) is False:
        sys.exit(f"goalreel: {scripts}: The code {_CHANGED}")
    if workflow.remote_exec and before and before["config"] != planned:
        sys.exit(f"goalreel: The configuration {_CHANGED}")
    if is_job and before:
        found = before["found"]
    else:
        _check_targets(plans, _asked_stages(workflow))
        found = {} if is_job else _findings(plans, suite_runs, scripts, workflow)
    noted[folder] = {"config": planned, "found": found, "asked": asked, "results": plans.results}
    noted[folder] |= {"trains": _is_training(workflow), "sources": sources_hash(scripts)}
    os.environ[PLANS] = packed(noted)
    complete = {name: config | found.get(name, {}) for name, config in runs.items()}
    return Plans(complete, suite_runs, scripts, asked)


def _check_targets(plans: Plans, targets: Sequence[str]) -> None:
    """Raise GoalreelError if no run has one of the targets that the command line names."""
    plan = next(iter(plans.runs.values()))
    if lacking := next((target for target in targets if target not in plans.stages), None):
        raise GoalreelError(
            f"{lacking}: Cannot be made of {plan.config['env']} with the policy {plan.run.policy}. "
            f"It needs {STAGES[lacking].needs}."
        )


def _findings(
    plans: Plans, suite_runs: Mapping[str, SuiteRun], scripts: Path, workflow
) -> dict[str, dict]:
    """Return the options that the first steps of each run set, by its name.

    `policy.extra_files` gets the files that the policy and the environment open. Unless the user
    sets them, `shard_size` keeps a job below a minute, and `film.fps` is the environment's own. If
    the first steps of such a run are known, the environment is not imported.
    """
    kept, first_steps = user_cache_path("goalreel") / "preflight", {}
    with ThreadPoolExecutor() as pool:
        for name, plan in plans.runs.items():
            config, steps = plan.config, {}
            with _errors_of(name):
                if _is_apart(plans.runs, workflow) or is_known_to_play(config):
                    check_environment(config)
                else:
                    record = kept / f"{plan.digest(plan.run.player)}.json"
                    steps = read_first_steps(record)
                    if steps is None:
                        check_environment(config)
                        given = config | {"seeds": plan.run.seeds and [plan.run.seeds[0]]}
                        steps = pool.submit(play_first_steps, given, scripts, record)
            first_steps[name] = steps
    found = {}
    for name, steps in first_steps.items():
        with _errors_of(name):
            known = steps.result() if isinstance(steps, Future) else steps
        found[name] = options_by(known, plans.runs[name].config, suite_runs[name].options)
    return found


@contextlib.contextmanager
def _errors_of(name: str) -> Iterator[None]:
    """Name the run of a suite in its errors."""
    try:
        yield
    except GoalreelError as error:
        if not name:
            raise
        raise GoalreelError(f"{name}: {error}".replace("\n", "\n  ")) from error


def _stop_trainings(scheduler: Callable, number: int, frame: object) -> None:
    """Pass SIGTERM to trainings, which save, because Snakemake would wait for hours."""
    import psutil

    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if any(word.endswith("scripts/train.py") for word in child.cmdline()):
                child.send_signal(number)
    scheduler(number, frame)


def _start_run(plans: Plans, workflow, stages: Mapping[str, str]) -> None:
    """Check that the jobs will find their files, and start to record their events."""
    scripts = next(iter(plans.runs.values())).scripts
    own = (file for plan in plans.runs.values() for file in plan.users_files())
    kinds = ("*.py", "*.toml", "goalreel/report/templates/*")
    programs = [path for kind in kinds for path in scripts.rglob(kind)]
    jobs = list(workflow.dag.needrun_jobs())
    rules = Counter(stages.get(job.rule.name, job.rule.name) for job in jobs)
    try:
        run_checks.check_sources(workflow, itertools.chain(sorted(programs), own))
        for folder in _folders({name: plan.config for name, plan in plans.runs.items()}):
            run_checks.lock_results(folder)
        run_checks.check_folders(jobs)
        if "verify" in rules and (views := sorted(rules.keys() & VIEWS)):
            made = ", ".join(views)
            raise GoalreelError(f"verify: Checks only existing files. Make {made} first.")
        if "verify" in rules and workflow.storage_settings.default_storage_provider:
            fix = "Start it without the storage, on a copy if they are in a bucket."
            raise GoalreelError(f"verify: Reads results on a disk. {fix}")
    except GoalreelError as error:
        sys.exit(f"goalreel: {error}")
    if plans.suite or not rules.keys() <= APART:
        for plan in plans.runs.values():
            # `verify` checks the file that the run wrote.
            if rules.keys() != {"verify"} or not Path(plan.results, RUN_FILE).exists():
                run_checks.write_run_file(plan.config)
    for note in {run_checks.software_note(plan.config) for plan in plans.runs.values()} - {""}:
        print(note, file=sys.stderr)
    limit = workflow.scheduling_settings.max_jobs_per_timespan
    if limit is not None and limit.max_jobs >= _NO_LIMIT:
        # The limiter would start a thread whenever the scheduler looks for jobs.
        workflow.scheduler.job_rate_limiter = None
    # The scheduler's SIGTERM handler acquires this lock in the thread that may already hold it
    # (job_scheduler.py, 9.27), so a plain lock would deadlock.
    workflow.scheduler._lock = threading.RLock()
    signal.signal(signal.SIGTERM, partial(_stop_trainings, signal.getsignal(signal.SIGTERM)))
    hang_up_as_terminated()
    if workflow.touch:  # a job that only touches its files keeps its log
        return
    # In the order of the stages. Another workflow's module may add a prefix to rule names.
    planned = {rule: rules[rule] for stage in STAGES for rule in rules if rule.endswith(stage)}
    events = job_events.JobEvents(planned, stages, partial(_print_causes, plans, workflow))
    logs = workflow.logger_manager
    _EVENTS.append(events)
    logs.logger.addHandler(events)
    # From here on `_print_causes` prints the errors.
    _print_only(workflow, lambda record: record.levelno == logging.WARNING)
    if not (logs.settings.verbose or logs.settings.quiet):
        events.start_line()


def _print_summary(plans: Plans, workflow) -> None:
    """Print the files that this run made."""
    for events in _end_waits():
        text = job_events.run_summary(events.finished)
        films = sum(job.rule.endswith("concat") for job in events.finished)
        if films and plans.suite:
            text += f"\n{pluralize(films, 'film')}: {plans.results}/RUN/film.mp4"
        elif films:
            text += f"\n    encoder  {plans.runs[''].run.encoder.label}"
        _print_last(job_events.with_addresses(workflow, text, set()))


def _print_causes(plans: Plans, workflow) -> None:
    """Print once which jobs failed and why."""
    # Snakemake calls no hook if it ends with an exception, such as with --keep-going after a
    # job has rejected its input. It closes its log handlers, and JobEvents calls this then.
    for events in _end_waits():
        failed = list(events.failed.values())
        job_events.fetch_logs(workflow, failed)
        jobs = sum(1 for _ in workflow.dag.needrun_jobs(exclude_finished=False))
        text = job_events.failure_summary(failed, events.messages, len(events.finished), jobs)
        unusable = {path for job in failed for f in job.failures for path in f["unusable"]}
        # The reports of check and verify name their own commands.
        is_report = failed and all(job.rule.endswith(("check", "verify")) for job in failed)
        is_said = is_report or "Run the same command" in text
        advice = "" if is_said else "Run the same command again to continue. "
        rules = {job.rule.name for job in workflow.dag.jobs}
        if failed and not is_report and plans.suite and "suite_index" in rules:
            text += _write_page_of_failures(plans.suite)
        _print_last(
            f"{job_events.with_addresses(workflow, text, unusable)}\n{advice}"
            f"Snakemake's log: {', '.join(workflow.logger_manager.get_logfile())}"
        )


def _write_page_of_failures(suite: SuitePlan) -> str:
    """Write the page of a suite some of whose runs failed, and return a line that names it."""
    pages = suite.files("index")
    files = dict(zip(STAGES["index"].outputs, pages, strict=True))
    _, *words = shlex.split(suite.command("index", {}, files, threads=1))
    if subprocess.run([sys.executable, *words], capture_output=True).returncode:
        return ""
    for path in pages:
        os.utime(path, (0, 0))  # the next run writes them again
    return f"\nWhich runs failed, and why: {pages[0]}"


def _end_waits() -> list[job_events.JobEvents]:
    """Return the events at the first call, and let the process end without a delay."""
    # If the user limits max-jobs-per-timespan, the scheduler starts a timer for each job and
    # cancels none (job_scheduler.py, 9.27). For the garbage collector see `plan_runs`.
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
