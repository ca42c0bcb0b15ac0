"""What Snakemake's log records say of a run's jobs, kept as plain values.

It is a handler of Snakemake's own logger, so that it hears every executor alike, grouped and
repeated jobs too, whatever of it is shown.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from goalreel.workflow.failure_summary import Failure


@dataclass
class _Job:
    """A job that has begun."""

    shard: str
    logs: dict[str, int | None]  # and their time stamps before it

    def logs_written(self) -> list[str]:
        """Return the logs that this attempt wrote: others are of an earlier run."""
        return [log for log, stamp in self.logs.items() if _stamp(log) not in (None, stamp)]


class JobEvents(logging.Handler):
    """The jobs of a run: how many have finished, and which failed.

    done: the number of jobs that have finished; messages: errors that are no job's own
    """

    def __init__(self, at_close: Callable[[], None] = lambda: None):
        """Listen from now on; at_close is called when Snakemake closes its log, at its end."""
        super().__init__()
        self._at_close = at_close
        self.done = 0
        self.messages: list[str] = []
        self._jobs: dict[int, _Job] = {}
        self._failed: dict[int, Failure] = {}
        self._groups: dict[int, tuple[str, list[str], str]] = {}

    @property
    def failures(self) -> list[Failure]:
        """The jobs that failed and did not succeed when they were repeated."""
        return list(self._failed.values())

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

    def _begin(self, record) -> None:
        wildcards = dict(record.wildcards or {})
        shard = wildcards.get("shard", wildcards.get("part", ""))
        self._jobs[record.jobid] = _Job(shard, {log: _stamp(log) for log in record.log or []})

    def _finish(self, record) -> None:
        self._failed.pop(record.job_id, None)  # it was repeated
        self.done += record.job_id in self._jobs
        self._jobs.pop(record.job_id, None)

    def _fail(self, record) -> None:
        job = self._jobs.get(record.jobid) or _Job("", {})
        group, group_logs, external = self._groups.get(record.jobid, ("", [], ""))
        self._failed[record.jobid] = Failure(
            rule=record.rule_name,
            shard=job.shard,
            logs=job.logs_written(),
            system_logs=[*(log for log in record.log or [] if log not in job.logs), *group_logs],
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
    "job_info": JobEvents._begin,
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
