"""The watch over a run: what Snakemake's log records tell of its jobs, kept as plain values.

It is a handler of Snakemake's own logger, so that it hears every executor alike, grouped and
repeated jobs too, whatever of it is shown. What is said of failures stands in failures, of the
time that is left in progress.
"""

import contextlib
import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from goalreel.workflow.failure_summary import Failure

_MOST_LOGS = 100  # of a rule that are read: more tell no better what a shard has


@dataclass
class _Job:
    """A job that was begun, by what its record says, and its logs' time stamps before it."""

    rule: str
    shard: str
    logs: list[str]
    begun: float
    stamps: list[int | None] = field(default_factory=list)

    def logs_written(self) -> list[str]:
        """Return the logs that this attempt wrote: others are of an earlier run."""
        pairs = zip(self.logs, self.stamps, strict=True)
        return [log for log, stamp in pairs if _stamp(log) not in (None, stamp)]


class Watch(logging.Handler):
    """The state of a run.

    planned: the number of jobs of each rule; done: of those that have finished; seconds: what they
    took in sum, from their submission on; logs: of the first of them; listeners: called whenever a
    job has finished; at_close: called when Snakemake closes its log, which each of its ends does
    """

    def __init__(self, planned: Mapping[str, int], at_close: Callable[[], None] = lambda: None):
        """Begin to watch a run of so many jobs of each rule."""
        super().__init__()
        self._at_close = at_close
        self.started = time.monotonic()
        self.planned = Counter(planned)
        self.done: Counter[str] = Counter()
        self.begun: Counter[str] = Counter()
        self.seconds: Counter[str] = Counter()
        self.logs: dict[str, list[str]] = {}
        self.listeners: list[Callable[[], None]] = []
        self.messages: list[str] = []
        self._jobs: dict[int, _Job] = {}
        self._failed: dict[int, Failure] = {}
        self._frames: dict[str, list[int]] = {}
        self._groups: dict[int, tuple[str, list[str], str]] = {}

    @property
    def failures(self) -> list[Failure]:
        """The jobs that failed and did not succeed when they were repeated."""
        return list(self._failed.values())

    def frames(self) -> dict[str, float]:
        """Return how many frames a shard has on average, by the rule whose logs told it."""
        return {rule: sum(told) / len(told) for rule, told in self._frames.items()}

    def close(self) -> None:
        """End the watch."""
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

    def _begin(self, record) -> None:
        wildcards = dict(record.wildcards or {})
        shard = wildcards.get("shard", wildcards.get("part", ""))
        logs = list(record.log or [])
        job = _Job(record.rule_name, shard, logs, time.monotonic(), [_stamp(log) for log in logs])
        if record.jobid not in self._jobs:
            self.begun[job.rule] += 1
        self._jobs[record.jobid] = job

    def _finish(self, record) -> None:
        job = self._jobs.pop(record.job_id, None)
        self._failed.pop(record.job_id, None)  # it was repeated
        if job is None:
            return
        self.done[job.rule] += 1
        self.seconds[job.rule] += time.monotonic() - job.begun
        logs = self.logs.setdefault(job.rule, [])
        if len(logs) < _MOST_LOGS:
            logs += job.logs
            self._count_frames(job)
        for listener in self.listeners:
            listener()

    def _count_frames(self, job: _Job) -> None:
        for log in job.logs if job.shard else []:
            with contextlib.suppress(OSError):
                said = Path(log).read_text(encoding="utf-8", errors="replace")
                found = re.findall(r"\b(\d+) (?:frames|states)\b", said)
                self._frames.setdefault(job.rule, []).extend(map(int, found[-1:]))

    def _fail(self, record) -> None:
        job = self._jobs.get(record.jobid) or _Job(record.rule_name, "", [], 0.0)
        own = job.logs_written()
        others = [log for log in record.log or [] if log not in job.logs]
        group, group_logs, external = self._groups.get(record.jobid, ("", [], ""))
        self._failed[record.jobid] = Failure(
            rule=record.rule_name,
            shard=job.shard,
            logs=own,
            system_logs=[*others, *group_logs],
            message=record.rule_msg or "",
            external=str(record.aux.get("external_jobid", external)),
            group=group,
        )

    def _fail_group(self, record) -> None:
        external = str(getattr(record, "external_jobid", ""))
        for job in record.job_error_info:
            self._groups[job["jobid"]] = (str(record.groupid), list(record.aux_logs), external)

    def _error(self, record) -> None:
        """Keep an error that is no job's own: an output that is missing, say."""
        said = record.getMessage()
        # What comes with a job's failure; and an input that the job has refused and deleted.
        refused = self._failed and re.search(r"Missing files after \d+ seconds", said)
        if "CalledProcessError" not in said and not refused:
            self.messages.append(said)


_TAKE = {
    "job_info": Watch._begin,
    "job_finished": Watch._finish,
    "job_error": Watch._fail,
    "group_error": Watch._fail_group,
    "error": Watch._error,
}


def _stamp(log: str) -> int | None:
    try:
        return Path(log).stat().st_mtime_ns
    except OSError:
        return None
