"""Progress, summary and error report of a run, from Snakemake's log records."""

import contextlib
import logging
import re
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from goalreel.cli import read_failure, read_log
from goalreel.errors import format_duration, listed, pluralize, shortened

_TERMINAL_SECONDS, _LOG_SECONDS = 0.5, 10  # between two lines of progress
_LONG_SECONDS = 5  # the age from which a job appears in them
_CLEAR = "\r\x1b[K"
_TABLES = ("check", "compare", "verify")  # rules whose logs the summary has
_INNER = ("atlas", "import_recording", "all")  # rules that it skips
_CAUSES, _LINES = 2, 8  # in an error report, so that it has at most 15 lines
_NO_CAUSE = (
    "The job was killed without a message. It may have run out of memory or disk space. Free some, "
    "or lower shard_size."
)
# The output of faulthandler.
_CRASH = re.compile(r"(?:Fatal Python error: |(?=Timeout))(.+?)!?\n+.+\n((?:  File .+\n){1,3})")


@dataclass
class Job:
    """A job that has started."""

    rule: str
    number: int = 0  # Snakemake's
    shard: str = ""  # the value of its last wildcard other than run, "" without any
    output: str = ""  # its first file
    logs: list[str] = field(default_factory=list)
    system_logs: list[str] = field(default_factory=list)  # the cluster's, of the job or its group
    message: str = ""  # the executor's, if the job failed
    is_grouped: bool = False  # whether it failed in a group
    start: float = 0.0
    run: str = ""  # of a suite

    @property
    def place(self) -> str:
        """Its run and its shard, "" for the job of a single run."""
        return "/".join(filter(None, (self.run, self.shard)))

    @cached_property
    def failures(self) -> list[dict]:
        """The errors in its logs, as `cli.read_failure` returns them."""
        return [failure for log in self.logs if (failure := read_failure(log))]


class JobEvents(logging.Handler):
    """The jobs that run, have finished or failed, from the log records of all executors."""

    def __init__(self, planned: Mapping[str, int], stages: Mapping[str, str], at_close: Callable):
        """Take the number of jobs by stage, and the stage of each rule."""
        super().__init__()
        self._planned, self._stages, self._at_close = planned, stages, at_close
        self._end = threading.Event()
        self._line = threading.Thread(target=self._print_line, daemon=True)
        self.running: dict[int, Job] = {}
        self.failed: dict[int, Job] = {}
        self.finished: list[Job] = []
        self.messages: list[str] = []
        self._seconds: Counter = Counter()  # of the finished jobs, by rule

    def start_line(self) -> None:
        """Print progress until the end, on a terminal in a single line."""
        self._line.start()

    def end_line(self) -> None:
        """Stop to print progress."""
        self._end.set()
        if self._line.is_alive():
            self._line.join()

    def close(self) -> None:
        """Remove the handler and call `at_close`."""
        super().close()
        self._at_close()

    def emit(self, record: logging.LogRecord) -> None:
        """Update the jobs from a record."""
        event = getattr(record, "event", None)
        take = getattr(self, f"_on_{getattr(event, 'value', event)}", lambda record: None)
        try:
            take(record)
        except Exception:  # noqa: BLE001 - an unknown kind of record must not stop the run
            self.handleError(record)

    def _on_job_info(self, record) -> None:
        wildcards = dict(record.wildcards or {})
        run = wildcards.pop("run", "")
        *_, shard = "", *wildcards.values()
        output, *_ = *(record.output or []), ""
        logs, now = list(record.log or []), time.monotonic()
        rule = self._stages.get(record.rule_name, record.rule_name)
        job = Job(rule, record.jobid, shard, output, logs, start=now, run=run)
        self.running[record.jobid] = job
        for log in logs:  # an earlier attempt's
            with contextlib.suppress(OSError):
                Path(log).unlink()

    def _on_job_finished(self, record) -> None:
        self.failed.pop(record.job_id, None)  # an attempt before this one failed
        if job := self.running.pop(record.job_id, None):
            self.finished.append(job)
            self._seconds[job.rule] += time.monotonic() - job.start

    def _on_group_error(self, record) -> None:
        for job in (self.running[about["jobid"]] for about in record.job_error_info):
            job.is_grouped, job.system_logs = True, list(record.aux_logs)

    def _on_job_error(self, record) -> None:
        job = self.running.pop(record.jobid, None) or Job(record.rule_name, record.jobid)
        job.message = record.rule_msg or ""
        job.system_logs += [log for log in record.log or [] if log not in job.logs]
        self.failed[record.jobid] = job

    def _on_error(self, record) -> None:
        if getattr(record, "exception", "") != "RuleException":  # of a job, which reports it
            self.messages.append(record.getMessage())

    def _print_line(self) -> None:
        start, end = (_CLEAR, "") if sys.stderr.isatty() else ("", "\n")
        while not self._end.wait(_TERMINAL_SECONDS if start else _LOG_SECONDS):
            width = shutil.get_terminal_size().columns - 1 if start else None
            print(f"{start}{self.line()[:width]}", end=end, file=sys.stderr, flush=True)
        print(start, end="", file=sys.stderr, flush=True)

    def line(self) -> str:
        """Return the progress of the rules, and the last log line of the oldest job."""
        many = {rule: number for rule, number in self._planned.items() if number > 1}
        done = Counter(job.rule for job in self.finished)
        parts = [", ".join(f"{rule} {done[rule]:,} of {many[rule]:,}" for rule in many)]
        started = [rule for rule in many if done[rule]]
        left = sum((many[rule] / done[rule] - 1) * self._seconds[rule] for rule in started)
        if running := list(self.running.values()):
            oldest = min(running, key=lambda job: job.start)
            parts += [f"{format_duration(left / len(running))} left"] if left else []
            if (seconds := time.monotonic() - oldest.start) > _LONG_SECONDS:
                last = [line for log in oldest.logs for line in read_log(log)][-1:]
                words = [oldest.rule, *oldest.place.split(), format_duration(seconds), *last]
                parts.append(" ".join(words))
        return " · ".join(filter(None, parts))


def run_summary(finished: Iterable[Job]) -> str:
    """Return a line for each job that is not of a shard: its first output and last log line."""
    lines = []
    for job in (job for job in finished if not (job.shard or job.rule.endswith(_INNER))):
        words = [line for log in job.logs for line in read_log(log)]
        if job.rule.endswith(_TABLES):
            lines += [f"{job.run}: {word}" if job.run else word for word in words]
        elif job.output and not job.run:
            lines.append(f"{job.rule:>11}  {', '.join([job.output, *words[-1:]])}")
    return "\n".join(lines)


def failure_summary(failed: Sequence[Job], messages: Sequence[str], done: int, jobs: int) -> str:
    """Return a report of failed jobs with their causes, and of messages from outside of jobs."""
    failures = [failure for job in failed for failure in job.failures]
    if failed and all(any(f["stopped"] for f in job.failures) for job in failed):
        saved = [line.strip() for f in failures for line in f["error"].splitlines()[1:]]
        return "\n".join([f"run interrupted, {done:,} of {jobs:,} jobs done", *saved])
    # A job without a cause failed because another job of its group did.
    culprits = [job for job in failed if job.failures or not job.is_grouped] or failed[:1]
    causes: dict[tuple, list[Job]] = {}  # equal but for numbers and temporary names
    for job in sorted(culprits, key=lambda job: job.place):
        cause = re.sub(r"\.goalreel-\S+-\w+|\d+", "", cause_of(job))
        causes.setdefault((job.rule, cause), []).append(job)
    shown = sorted(causes.values(), key=len, reverse=True)[:_CAUSES]
    what = f"{pluralize(len(culprits), 'job')} failed" if culprits else "run stopped"
    lines = [f"{what}, {done:,} of {jobs:,} done"]
    if more := len(causes) - len(shown):
        lines[0] += f" ({pluralize(more, 'more cause')} in their logs)"
    for members in shown:
        job, shards = members[0], sorted({job.place for job in members} - {""})
        head, *rest = shortened(cause_of(job), _LINES // len(shown))
        name = f"{job.rule} {listed(shards, 5)}".rstrip()
        lines += [f"{name}: {head}", *(f"  {line}" for line in rest)]
        if logs := [*job.logs, *job.system_logs]:
            lines.append(f"  log: {', '.join(logs)}")
    text = "\n".join(lines)
    if unusable := {path for f in failures for path in f["unusable"] if path not in text}:
        lines.append(f"Other unusable files: {listed(sorted(unusable), 5)}")
    if messages and not failures:  # otherwise they repeat these
        lines += shortened(messages[0], 2)
    return "\n".join(lines)


def cause_of(job: Job) -> str:
    """Return why a job failed: its program's error, or the cluster's message, or its log."""
    errors = [failure["error"] for failure in job.failures]
    if not errors or any(failure["stopped"] for failure in job.failures):
        errors += [line for log in job.system_logs for line in read_log(log)]
        errors += filter(None, [job.message.strip()])
    lines = [line for log in job.logs for line in read_log(log) if " so far, " not in line]
    if not errors and (crash := _CRASH.search("\n".join(lines))):
        errors = [f"The job crashed ({crash[1]}) in the code below. Correct it.\n{crash[2]}"]
    return "\n".join(dict.fromkeys(errors) or lines) or _NO_CAUSE


def fetch_logs(workflow, failed: Iterable[Job]) -> None:
    """Download the logs of failed jobs from the storage."""
    numbers = {job.number: job for job in failed}
    for job in (job for job in workflow.dag.jobs if job.jobid in numbers):
        for log in _stored(job.log):
            with contextlib.suppress(Exception):  # whatever a provider raises
                if not workflow.local_exec:
                    workflow.async_run(log.storage_object.managed_retrieve())
            numbers[job.jobid].logs.append(str(log))


def with_addresses(workflow, text: str, unusable: set[str]) -> str:
    """Return a text with addresses instead of local copies, which no longer exist."""
    # Also delete the objects whose copies are in `unusable`, so that the next run makes them.
    for file in _stored(file for job in workflow.dag.jobs for file in (*job.input, *job.output)):
        address = str(file.storage_object.query)
        text = text.replace(str(file), address)
        if str(file) in unusable:
            unusable.remove(str(file))
            with contextlib.suppress(Exception):  # whatever a provider raises
                workflow.async_run(file.storage_object.managed_remove())
                text += f"\ngoalreel deleted it, and the next run makes it again: {address}"
    return text


def _stored(files: Iterable) -> list:
    return [file for file in files if getattr(file, "is_storage", False)]
