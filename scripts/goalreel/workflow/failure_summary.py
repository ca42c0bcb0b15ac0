"""The end of a failed run: which jobs failed, why, each cause once, and their logs."""

import re
from collections.abc import Sequence

from goalreel.cli import read_log
from goalreel.errors import pluralize, shortened
from goalreel.workflow.job_events import Job

_CAUSES, _LINES = 2, 8  # that are shown, so that the summary has at most 15 lines
_NO_CAUSE = (
    "The job was killed without a message. It may have run out of memory or disk space: lower "
    "shard_size"
)


def failure_summary(failed: Sequence[Job], messages: Sequence[str], done: int, jobs: int) -> str:
    """Return what failed and why, as some lines of text.

    Args:
        failed: the jobs that failed.
        messages: errors that are no job's own.
        done: the number of jobs that have finished.
        jobs: the number of jobs that the run was to have.
    """
    failures = [failure for job in failed for failure in job.failures]
    if failed and all(any(f["stopped"] for f in job.failures) for job in failed):
        return f"run interrupted, {done:,} of {jobs:,} jobs done"
    # A job of a group that names no cause only fell with another.
    culprits = [job for job in failed if job.failures or not job.is_grouped] or failed[:1]
    causes: dict[tuple, list[Job]] = {}  # without numbers and temporary names, those of shards
    for job in sorted(culprits, key=lambda job: job.shard):
        cause = re.sub(r"\.goalreel-\S+-\w+|\d+", "", cause_of(job))
        causes.setdefault((job.rule, cause), []).append(job)
    shown = sorted(causes.items(), key=lambda item: -len(item[1]))[:_CAUSES]
    lines = []
    for (rule, _), members in shown:
        names = _listed({job.shard for job in members} - {""})
        head, *rest = shortened(cause_of(members[0]), _LINES // len(shown))
        lines += [f"{rule}{names}: {head}", *(f"  {line}" for line in rest)]
        if logs := [*members[0].logs, *members[0].system_logs]:
            lines.append(f"  log: {', '.join(logs)}")
    text = "\n".join(lines)
    if unusable := {path for f in failures for path in f["unusable"] if path not in text}:
        lines.append(f"Also not usable:{_listed(unusable)}")
    if messages and not failures:  # else they repeat these
        lines += shortened(messages[0], 2)
    more = len(causes) - len(shown)
    more = f" ({pluralize(more, 'more cause')} in their logs)" if more else ""
    first = f"{pluralize(len(culprits), 'job')} failed" if culprits else "run stopped"
    return "\n".join([f"{first}, {done:,} of {jobs:,} done{more}", *lines])


def cause_of(job: Job) -> str:
    """Return why a job failed: its program's error, else what the cluster says, else its log."""
    errors = [failure["error"] for failure in job.failures]
    if not errors or any(failure["stopped"] for failure in job.failures):
        errors += [line for log in job.system_logs for line in read_log(log)]
        errors += filter(None, [job.message.strip()])
    lines = (line for log in job.logs for line in read_log(log) if " so far, " not in line)
    return "\n".join(dict.fromkeys(errors) or lines) or _NO_CAUSE


def _listed(names: set[str]) -> str:
    """Return the first names after a space, and how many there are more; "" for none."""
    more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
    return f" {', '.join(sorted(names)[:5])}{more}" if names else ""
