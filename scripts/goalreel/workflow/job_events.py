"""Snakemake's log records: how far the run is, and which jobs failed.

Snakemake's log file has all records, and `--verbose` prints them.
"""

import contextlib
import logging
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from goalreel.cli import read_failure, read_log
from goalreel.errors import clock

_TERMINAL_SECONDS, _LOG_SECONDS = 0.5, 10  # between two lines
_LONG_SECONDS = 5  # after which a job is named
_CLEAR = "\r\x1b[K"


@dataclass
class Job:
    """A job that has started."""

    rule: str
    number: int = 0  # in Snakemake
    shard: str = ""  # the last of its wildcards' values, "" without any
    output: str = ""  # the first of its files
    logs: list[str] = field(default_factory=list)  # its own
    system_logs: list[str] = field(default_factory=list)  # the cluster's, of the job or its group
    message: str = ""  # of the executor, if it failed
    is_grouped: bool = False  # whether it failed in a group
    start: float = 0.0

    @cached_property
    def failures(self) -> list[dict]:
        """What its programs wrote of their failures; see cli.read_failure."""
        return [failure for log in self.logs if (failure := read_failure(log))]


class JobEvents(logging.Handler):
    """The jobs that run, have finished and failed, and errors that are no job's own.

    A handler of Snakemake's logger hears every executor alike, grouped and repeated jobs too.
    """

    def __init__(self, planned: Mapping[str, int], at_close: Callable[[], object]):
        """Listen from now on.

        Args:
            planned: how many jobs the run is to have, by rule.
            at_close: is called when Snakemake closes its log, at its end.
        """
        super().__init__()
        self._planned, self._at_close = planned, at_close
        self._end, self._line = threading.Event(), threading.Thread(target=self._print_line)
        self.running: dict[int, Job] = {}
        self.failed: dict[int, Job] = {}
        self.finished: list[Job] = []
        self.messages: list[str] = []
        self._seconds: Counter = Counter()  # of the finished jobs, by rule

    def start_line(self) -> None:
        """Print how far the run is, in a line that moves on a terminal, until the end."""
        self._line.daemon = True
        self._line.start()

    def end_line(self) -> None:
        """Print it no more."""
        self._end.set()
        if self._line.is_alive():
            self._line.join()

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
        *_, shard = "", *dict(record.wildcards or {}).values()
        output, *_ = *(record.output or []), ""
        logs, now = list(record.log or []), time.monotonic()
        job = Job(record.rule_name, record.jobid, shard, output, logs, start=now)
        self.running[record.jobid] = job
        for log in logs:  # of an earlier attempt, if this one ends before it writes one
            with contextlib.suppress(OSError):
                Path(log).unlink()

    def _on_job_finished(self, record) -> None:
        self.failed.pop(record.job_id, None)  # it was repeated
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
        if getattr(record, "exception", "") != "RuleException":  # which comes with a job's failure
            self.messages.append(record.getMessage())

    def _print_line(self) -> None:
        start, end = (_CLEAR, "") if sys.stderr.isatty() else ("", "\n")
        while not self._end.wait(_TERMINAL_SECONDS if start else _LOG_SECONDS):
            width = shutil.get_terminal_size().columns - 1 if start else None
            print(f"{start}{self.line()[:width]}", end=end, file=sys.stderr, flush=True)
        print(start, end="", file=sys.stderr, flush=True)

    def line(self) -> str:
        """Return how far the rules are, and what the oldest job says."""
        many = {rule: number for rule, number in self._planned.items() if number > 1}
        done = Counter(job.rule for job in self.finished)
        parts = [", ".join(f"{rule} {done[rule]:,} of {many[rule]:,}" for rule in many)]
        begun = [rule for rule in many if done[rule]]
        left = sum((many[rule] / done[rule] - 1) * self._seconds[rule] for rule in begun)
        if running := list(self.running.values()):
            oldest = min(running, key=lambda job: job.start)
            parts += [f"{clock(left / len(running))} left"] if left else []
            if (seconds := time.monotonic() - oldest.start) > _LONG_SECONDS:
                words = [line for log in oldest.logs for line in read_log(log)][-1:]
                parts.append(" ".join([oldest.rule, *oldest.shard.split(), clock(seconds), *words]))
        return " · ".join(filter(None, parts))
