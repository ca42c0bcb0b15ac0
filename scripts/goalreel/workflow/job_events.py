"""Snakemake's log records: which are printed, how far the shards are, which jobs failed.

Snakemake's log file has all records, and `--verbose` prints them.
"""

import contextlib
import logging
import re
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from goalreel.cli import read_failure, read_log, read_progress
from goalreel.errors import clock, pluralize

_ROUTINE = re.compile(
    "Building DAG|Using shell|Provided |Rules claiming|Select jobs|Execute |host:|"
    "Conda environments: ignored|Assuming unrestricted|singularity|Complete log"
)
_TERMINAL_SECONDS, _LOG_SECONDS = 0.5, 10  # between two lines
_LONG_SECONDS = 5  # after which a job that is no shard's is named
_CLEAR = "\r\x1b[K"


def print_only(workflow, is_printed: Callable[[logging.LogRecord], bool]) -> None:
    """Have Snakemake print only some records, unless the user wants everything."""
    for handler in workflow.logger_manager.logger.handlers:
        if handler.name == "DefaultStreamHandler" and not workflow.logger_manager.settings.verbose:
            handler.addFilter(is_printed)


def is_plan(record: logging.LogRecord) -> bool:
    """Return whether a record is about the plan of a run, and no routine."""
    event = getattr(record, "event", None)
    is_routine = getattr(event, "value", event) in ("job_info", "workflow_started")
    return not is_routine and not _ROUTINE.match(record.getMessage())


@dataclass
class Job:
    """A job that has started."""

    rule: str
    number: int = 0  # in Snakemake
    shard: str = ""  # the last of its wildcards' values, "" without any
    logs: list[str] = field(default_factory=list)  # its own
    system_logs: list[str] = field(default_factory=list)  # the cluster's, of the job or its group
    message: str = ""  # of the executor, if it failed
    is_grouped: bool = False  # whether it failed in a group
    start: float = 0.0

    @property
    def seconds(self) -> float:
        """The time since it started."""
        return time.monotonic() - self.start

    @cached_property
    def failures(self) -> list[dict]:
        """What its programs wrote of their failures; see cli.read_failure."""
        return [failure for log in self.logs if (failure := read_failure(log))]

    def progress(self, episodes: int = 0) -> Counter:
        """Return its episodes, frames and seconds by its rule; episodes: of a finished shard."""
        logged, frames = read_progress(self.logs)
        counts = {"episodes": episodes or logged, "frames": frames, "seconds": self.seconds}
        return Counter({(self.rule, unit): number for unit, number in counts.items()})


class JobEvents(logging.Handler):
    """The jobs that are running and that failed, and a line about how far the run's shards are.

    A handler of Snakemake's logger hears every executor alike, grouped and repeated jobs too.
    messages: errors that are no job's own; done: the number of finished jobs.
    """

    def __init__(
        self, sizes: Mapping[str, int], planned: Mapping[str, int], unit: str, at_close: Callable
    ):
        """Listen from now on.

        Args:
            sizes: the number of episodes, or reaches, of each shard.
            planned: how many of them each stage with a job per shard is to make.
            unit: "episode" or "reach".
            at_close: is called when Snakemake closes its log, at its end.
        """
        super().__init__()
        self._sizes, self._planned, self._unit, self._at_close = sizes, planned, unit, at_close
        self._start, self._end, self._progress = time.monotonic(), threading.Event(), Counter()
        self.running: dict[int, Job] = {}
        self.failed: dict[int, Job] = {}
        self.messages: list[str] = []
        self.done = 0

    def close(self) -> None:
        """End listening."""
        super().close()
        self._at_close()

    def emit(self, record: logging.LogRecord) -> None:
        """Take note of a record."""
        event = getattr(record, "event", None)
        take = getattr(self, f"_on_{getattr(event, 'value', event)}", lambda record: None)
        try:
            take(record)
        except Exception:  # noqa: BLE001 - a record of another shape costs a line, not the run
            self.handleError(record)

    def _on_job_info(self, record) -> None:
        values, logs = list(dict(record.wildcards or {}).values()), list(record.log or [])
        job = Job(record.rule_name, record.jobid, *values[-1:], logs=logs, start=time.monotonic())
        self.running[record.jobid] = job
        for log in logs:  # of an earlier attempt, if this one ends before it writes one
            with contextlib.suppress(OSError):
                Path(log).unlink()

    def _on_job_finished(self, record) -> None:
        self.failed.pop(record.job_id, None)  # it was repeated
        if job := self.running.pop(record.job_id, None):
            self.done += 1
            self._progress += job.progress(self._sizes.get(job.shard, 0))

    def _on_group_error(self, record) -> None:
        for job in (self.running[about["jobid"]] for about in record.job_error_info):
            job.is_grouped, job.system_logs = True, list(record.aux_logs)

    def _on_job_error(self, record) -> None:
        job = self.running.pop(record.jobid, None) or Job(record.rule_name, record.jobid)
        job.message = record.rule_msg or ""
        job.system_logs += [log for log in record.log or [] if log not in job.logs]
        self.failed[record.jobid] = job

    def _on_error(self, record) -> None:
        if getattr(record, "exception", "") != "RuleException":  # which comes with a job's failure
            self.messages.append(record.getMessage())

    def start_line(self) -> Callable[[], None]:
        """Print the line, which moves on a terminal, from now on; return what ends that."""
        thread = threading.Thread(target=self._print_line, daemon=True)
        thread.start()
        return lambda: (self._end.set(), thread.join())

    def _print_line(self) -> None:
        is_terminal = sys.stderr.isatty()
        while not self._end.wait(_TERMINAL_SECONDS if is_terminal else _LOG_SECONDS):
            text, width = self.line(), shutil.get_terminal_size().columns - 1
            if is_terminal:
                print(f"{_CLEAR}{text[:width]}", end="", file=sys.stderr, flush=True)
            elif text:
                print(text, file=sys.stderr, flush=True)
        if is_terminal:
            print(_CLEAR, end="", file=sys.stderr, flush=True)

    def line(self) -> str:
        """Return how far the shards are, "" if there is nothing to say yet."""
        running, planned, parts = list(self.running.values()), self._planned, []
        if any(job.rule in planned for job in running):
            progress = sum((job.progress() for job in running), self._progress)
            done, total = {s: progress[s, "episodes"] for s in planned}, sum(self._sizes.values())
            stages = (f"{stage} {total - planned[stage] + done[stage]:,}" for stage in planned)
            parts.append(f"{', '.join(stages)} of {pluralize(total, self._unit)}")
            if frames := progress[next(iter(planned)), "frames"]:
                parts.append(f"{frames / (time.monotonic() - self._start):,.0f} frames/s")
            started = [stage for stage in planned if done[stage]]
            seconds = sum((planned[s] / done[s] - 1) * progress[s, "seconds"] for s in started)
            if seconds:
                parts.append(f"{clock(seconds / len(running))} left")
        for job in running:
            if job.rule not in planned and job.seconds > _LONG_SECONDS:
                words = [line for log in job.logs for line in read_log(log)][-1:]
                parts.append(" ".join([job.rule, clock(job.seconds), *words]))
        return " · ".join(parts)
