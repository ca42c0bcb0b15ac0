"""What a failed run says at its end: which jobs failed, and why, each cause once.

Which jobs failed is heard from Snakemake (job_events). Why, a program of goalreel writes as the
last line of its log, in JSON (cli.failure_record); of a log without one the last lines are shown.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_LAST_LINES = 10  # of a log that holds no record
_MOST_LINES = 40  # of one cause: what ffmpeg says and its command may be many
_MOST_SHARDS = 5
_NO_CAUSE = (
    "error: the job gave no cause: killed, perhaps for want of memory, or without room on the disk "
    "for its log"
)


@dataclass(frozen=True)
class Failure:
    """A job that failed."""

    rule: str
    shard: str = ""  # "" for a rule without shards
    logs: Sequence[str] = ()  # the job's own, as far as this attempt wrote them
    system_logs: Sequence[str] = ()  # the cluster's, of the job or of its group
    message: str = ""  # of the executor
    external: str = ""  # the cluster's number of the job
    group: str = ""  # that it ran in

    @property
    def records(self) -> list[dict]:
        """What its programs wrote of their failures; see cli.failure_record."""
        return [record for log in self.logs if (record := _record(log))]


def failure_summary(
    failures: Sequence[Failure], messages: Sequence[str], done: int, jobs: int
) -> str:
    """Return what failed and why, as some lines of text: equal causes are shown once.

    Args:
        failures: the jobs that failed.
        messages: errors that are no job's own.
        done: the number of jobs that have finished.
        jobs: the number of jobs that the run was to have.
    """
    groups: dict[tuple, list[tuple[Failure, str]]] = {}
    for failure in sorted(_culprits(failures), key=lambda failure: failure.shard):
        cause = cause_of(failure)
        groups.setdefault((failure.rule, _without_numbers(cause)), []).append((failure, cause))
    lines = []
    for (rule, _), members in sorted(groups.items(), key=lambda item: -len(item[1])):
        first, cause = members[0]
        names = _shards([failure.shard for failure, _ in members])
        same = f" ({len(members):,} jobs of the same cause)" if len(members) > 1 else ""
        lines += [f"{rule}{names}{same}:", *(f"  {line}" for line in _shortened(cause))]
        lines += [f"  log: {log}" for log in [*first.logs, *first.system_logs]]
    if not any(failure.records for failure in failures):  # else these repeat what a job has said
        for message in {_without_numbers(text): text for text in reversed(messages)}.values():
            lines += message.rstrip().splitlines()[-_LAST_LINES:]
    failed = sum(map(len, groups.values()))
    count = f"{failed:,} {'job' if failed == 1 else 'jobs'} failed" if failed else "run stopped"
    return "\n".join([f"{count}, {done:,} of {jobs:,} done", *lines])


def cause_of(failure: Failure) -> str:
    """Return why a job failed: its program's error, else what the cluster says, else its log."""
    errors = [f"error: {record['error']}" for record in failure.records]
    if errors and not any(record.get("stopped") for record in failure.records):
        return "\n".join(errors)
    cluster = [line for log in failure.system_logs for line in _last_lines(log)]
    parts = [*errors, *cluster, failure.message.strip()]
    if any(parts):
        return "\n".join(dict.fromkeys(filter(None, parts)))
    number = f"; the cluster calls it job {failure.external}" if failure.external else ""
    return "\n".join([*(line for log in failure.logs for line in _last_lines(log))]) or (
        _NO_CAUSE + number
    )


def _culprits(failures: Sequence[Failure]) -> list[Failure]:
    """Return the failures without those jobs of a group that only fell with another of it."""
    guilty = {failure.group for failure in failures if failure.group and failure.records}
    culprits, seen = [], set()
    for failure in failures:
        if failure.group in guilty and not failure.records:
            continue
        if failure.group and failure.group not in guilty:
            if failure.group in seen:  # none of its jobs names a cause: the group is shown once
                continue
            seen.add(failure.group)
        culprits.append(failure)
    return culprits


def _record(log: str) -> dict | None:
    """Return the failure that a program has noted in the last line of its log, None for none."""
    lines = _read(log).rstrip().splitlines()
    try:
        record = json.loads(lines[-1]) if lines else None
    except ValueError:
        return None
    return record if isinstance(record, dict) and "error" in record else None


def _last_lines(log: str) -> list[str]:
    return _read(log).rstrip().splitlines()[-_LAST_LINES:]


def _read(log: str) -> str:
    try:
        return Path(log).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _without_numbers(cause: str) -> str:
    """Return a cause without what differs from shard to shard: numbers and temporary names."""
    return re.sub(r"\d+", "#", re.sub(r"\.goalreel-\S+-\w+", "", cause))


def _shortened(cause: str) -> list[str]:
    lines = cause.splitlines()
    if len(lines) <= _MOST_LINES:
        return lines
    half = _MOST_LINES // 2
    return [*lines[:half], f"... ({len(lines) - 2 * half} more lines in the log)", *lines[-half:]]


def _shards(shards: Sequence[str]) -> str:
    names = sorted(filter(None, shards))
    if not names:
        return ""
    more = f" and {len(names) - _MOST_SHARDS:,} more" if len(names) > _MOST_SHARDS else ""
    return f" {', '.join(names[:_MOST_SHARDS])}{more}"
