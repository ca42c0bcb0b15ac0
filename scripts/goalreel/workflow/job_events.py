"""Snakemake's log records: which are printed, how far they say the shards are, which jobs failed.

JobEvents is a handler of Snakemake's own logger, so that it hears every executor alike, grouped and
repeated jobs too, whatever is printed. Snakemake's log file has all records, and `--verbose` prints
them.
"""

import logging
import re
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from goalreel.cli import read_log, read_progress
from goalreel.errors import clock, counted
from goalreel.workflow.failure_summary import Failure

_ROUTINE = re.compile(
    "Building DAG|Using shell|Provided |Rules claiming|Select jobs|Execute |host:|"
    "Conda environments: ignored|Assuming unrestricted|singularity|Complete log"
)
_TERMINAL_SECONDS, _LOG_SECONDS = 0.5, 10  # between two lines
_LONG = 5  # seconds after which a job that is no shard's is named
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


def is_warning(record: logging.LogRecord) -> bool:
    """Return whether a record is a warning. Once jobs run, errors are `print_causes`'s."""
    return record.levelno == logging.WARNING


@dataclass
class Job:
    """A job that has started."""

    rule: str
    shard: str  # the last of its wildcards' values, "" without any
    stamps: dict[str, int | None]  # its logs, each with its modification time before the job
    start: float
    seconds: float = 0.0  # that it took

    @property
    def logs(self) -> list[str]:
        """The logs that this attempt wrote: others are of an earlier run."""
        return [log for log, stamp in self.stamps.items() if _stamp(log) not in (None, stamp)]


class JobEvents(logging.Handler):
    """The jobs of a run: those that have finished, in their order, and those that failed.

    messages: errors that are no job's own
    """

    def __init__(self, at_close: Callable[[], None] = lambda: None):
        """Listen from now on; at_close is called when Snakemake closes its log, at its end."""
        super().__init__()
        self._at_close = at_close
        self.finished: list[Job] = []
        self.messages: list[str] = []
        self._jobs: dict[int, Job] = {}
        self._failed: dict[int, Failure] = {}
        self._groups: dict[int, tuple[str, list[str], str]] = {}

    @property
    def failures(self) -> list[Failure]:
        """The jobs that failed and did not succeed when they were repeated."""
        return list(self._failed.values())

    @property
    def running(self) -> list[Job]:
        """The jobs that have started and not ended."""
        return list(self._jobs.values())

    def close(self) -> None:
        """End listening."""
        super().close()
        self._at_close()

    def emit(self, record: logging.LogRecord) -> None:
        """Take note of a record."""
        try:
            event = getattr(record, "event", None)
            take = _TAKE.get(getattr(event, "value", event))
            if take is not None:
                take(self, record)
        except Exception:  # noqa: BLE001 - a record of another shape costs a line, not the run
            self.handleError(record)

    def _start(self, record) -> None:
        values = list(dict(record.wildcards or {}).values())
        stamps = {log: _stamp(log) for log in record.log or []}
        self._jobs[record.jobid] = Job(
            record.rule_name, (values or [""])[-1], stamps, time.monotonic()
        )

    def _finish(self, record) -> None:
        self._failed.pop(record.job_id, None)  # it was repeated
        if job := self._jobs.pop(record.job_id, None):
            job.seconds = time.monotonic() - job.start
            self.finished.append(job)

    def _fail(self, record) -> None:
        job = self._jobs.pop(record.jobid, None) or Job(record.rule_name, "", {}, 0)
        group, group_logs, external = self._groups.get(record.jobid, ("", [], ""))
        self._failed[record.jobid] = Failure(
            rule=record.rule_name,
            job=record.jobid,
            shard=job.shard,
            logs=job.logs,
            system_logs=[*(log for log in record.log or [] if log not in job.stamps), *group_logs],
            message=record.rule_msg or "",
            external=str(record.aux.get("external_jobid", external)),
            group=group,
        )

    def _fail_group(self, record) -> None:
        external = str(getattr(record, "external_jobid", ""))
        for job in record.job_error_info:
            self._groups[job["jobid"]] = (str(record.groupid), list(record.aux_logs), external)

    def _error(self, record) -> None:
        if getattr(record, "exception", "") != "RuleException":  # which comes with a job's failure
            self.messages.append(record.getMessage())


_TAKE = {
    "job_info": JobEvents._start,
    "job_finished": JobEvents._finish,
    "job_error": JobEvents._fail,
    "group_error": JobEvents._fail_group,
    "error": JobEvents._error,
}


def _stamp(log: str) -> int | None:
    try:
        return Path(log).stat().st_mtime_ns
    except OSError:
        return None


class ProgressLine:
    """How far the run's shards are: a line that moves on a terminal, one every 10 s elsewhere."""

    def __init__(
        self, events: JobEvents, planned: Mapping[str, Mapping[str, int]], total: int, unit: str
    ):
        """Start to print, in a thread of its own.

        Args:
            events: of the run's jobs.
            planned: of each stage that has a job per shard, the number of episodes, or reaches, in
                each shard that this run makes.
            total: the number of episodes, or reaches, in all shards.
            unit: "episode" or "reach".
        """
        self._events, self._planned, self._total, self._unit = events, planned, total, unit
        self._done, self._seconds = Counter(), Counter()  # of finished jobs, by stage
        self._counted = self._frames = 0
        self._is_terminal = sys.stderr.isatty()
        self._start, self._end = time.monotonic(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Print no more, and clear the line on a terminal."""
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(_TERMINAL_SECONDS if self._is_terminal else _LOG_SECONDS):
            text = self.text()
            if self._is_terminal:
                width = shutil.get_terminal_size().columns - 1
                print(f"{_CLEAR}{text[:width]}", end="", file=sys.stderr, flush=True)
            elif text:
                print(text, file=sys.stderr, flush=True)
        if self._is_terminal:
            print(_CLEAR, end="", file=sys.stderr, flush=True)

    def text(self) -> str:
        """Return the line, "" if there is nothing to say yet."""
        now, first = time.monotonic(), next(iter(self._planned), None)
        for job in self._events.finished[self._counted :]:
            self._counted += 1
            if job.shard in self._planned.get(job.rule, ()):
                self._done[job.rule] += self._planned[job.rule][job.shard]
                self._seconds[job.rule] += job.seconds
                self._frames += read_progress(job.logs)[1] if job.rule == first else 0
        done, seconds, frames = self._done.copy(), self._seconds.copy(), self._frames
        running, parts = self._events.running, []
        for job in running:
            if job.rule in self._planned:
                episodes, shot = read_progress(job.logs)
                done[job.rule] += episodes
                seconds[job.rule] += now - job.start
                frames += shot if job.rule == first else 0
            elif now - job.start > _LONG:
                words = [line for log in job.logs for line in read_log(log)][-1:]
                parts.append(" ".join([job.rule, clock(now - job.start), *words]))
        return " · ".join([*self._shards(done, seconds, frames, running, now), *parts])

    def _shards(self, done: Counter, seconds: Counter, frames: int, running: list[Job], now: float):
        """Yield what is known of the shards: episodes of each stage, frames a second, time left."""
        planned = {stage: sum(sizes.values()) for stage, sizes in self._planned.items()}
        if not any(job.rule in planned for job in running):
            return
        stages = (f"{s} {self._total - planned[s] + done[s]:,}" for s in planned)
        yield f"{', '.join(stages)} of {counted(self._total, self._unit)}"
        if frames:
            yield f"{frames / (now - self._start):,.0f} frames/s"
        left = sum((planned[s] - done[s]) * seconds[s] / done[s] for s in planned if done[s])
        if left:
            yield f"{clock(left / len(running))} left"
