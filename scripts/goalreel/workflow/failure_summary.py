"""What a failed run says at its end: which jobs failed, and why, each cause once.

Snakemake reports the jobs that failed (job_events). A program of goalreel ends its log with the
cause (cli.read_failure). Of another log the last lines are shown.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from goalreel.cli import read_failure, read_log
from goalreel.errors import counted, shortened

_MOST_CAUSES, _MOST_LINES = 2, 8  # lines of all causes, so that the summary has at most 15
_MOST_NAMES = 5
_NO_CAUSE = (
    "The job was killed without a message. It may have run out of memory or disk space: lower "
    "shard_size"
)


@dataclass(frozen=True)
class Failure:
    """A job that failed."""

    rule: str
    shard: str = ""  # the last of its wildcards' values, "" without any
    job: int = 0  # its number in Snakemake
    logs: Sequence[str] = ()  # the job's own, as far as this attempt wrote them
    system_logs: Sequence[str] = ()  # the cluster's, of the job or of its group
    message: str = ""  # of the executor
    external: str = ""  # the cluster's number of the job
    group: str = ""  # that it ran in

    @property
    def records(self) -> list[dict]:
        """What its programs wrote of their failures; see cli.read_failure."""
        return [record for log in self.logs if (record := read_failure(log))]


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
    if failures and all(any(r["stopped"] for r in failure.records) for failure in failures):
        return f"run interrupted, {done:,} of {jobs:,} jobs done"
    groups: dict[tuple, list[tuple[Failure, str]]] = {}
    for failure in sorted(_culprits(failures), key=lambda failure: failure.shard):
        cause = cause_of(failure)
        groups.setdefault((failure.rule, _without_numbers(cause)), []).append((failure, cause))
    lines, ordered = [], sorted(groups.items(), key=lambda item: -len(item[1]))
    most = _MOST_LINES // max(len(ordered[:_MOST_CAUSES]), 1)
    for (rule, _), members in ordered[:_MOST_CAUSES]:
        first, cause = members[0]
        names = _listed(sorted({failure.shard for failure, _ in members} - {""}))
        head, *rest = shortened(cause, most)
        lines += [f"{rule}{names}: {head}", *(f"  {line}" for line in rest)]
        if logs := [*first.logs, *first.system_logs]:
            lines.append(f"  log: {', '.join(logs)}")
    shown = "\n".join(lines)
    unusable = {path for failure in failures for r in failure.records for path in r["unusable"]}
    if more := sorted(path for path in unusable if path not in shown):
        lines.append(f"Also not usable:{_listed(more)}")
    if messages and not any(failure.records for failure in failures):  # else they repeat these
        lines += shortened(messages[0], 2)
    count, others = sum(map(len, groups.values())), len(ordered) - _MOST_CAUSES
    failed = f"{counted(count, 'job')} failed" if count else "run stopped"
    more = f" ({counted(others, 'more cause')} in their logs)" if others > 0 else ""
    return "\n".join([f"{failed}, {done:,} of {jobs:,} done{more}", *lines])


def cause_of(failure: Failure) -> str:
    """Return why a job failed: its program's error, else what the cluster says, else its log."""
    errors = [record["error"] for record in failure.records]
    if errors and not any(record["stopped"] for record in failure.records):
        return "\n".join(errors)
    cluster = [line for log in failure.system_logs for line in read_log(log)]
    parts = [*errors, *cluster, failure.message.strip()]
    if any(parts):
        return "\n".join(dict.fromkeys(filter(None, parts)))
    number = f" (job {failure.external} of the cluster)" if failure.external else ""
    lines = (line for log in failure.logs for line in read_log(log) if " so far, " not in line)
    return "\n".join(lines) or _NO_CAUSE + number


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


def _without_numbers(cause: str) -> str:
    """Return a cause without what differs from shard to shard: numbers and temporary names."""
    return re.sub(r"\d+", "#", re.sub(r"\.goalreel-\S+-\w+", "", cause))


def _listed(names: Sequence[str]) -> str:
    """Return the first names after a space, and how many there are more; "" for none."""
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return f" {', '.join(names[:_MOST_NAMES])}{more}" if names else ""
