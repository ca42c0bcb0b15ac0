"""What stands at the end of a run: what it made, or which jobs failed, why, and their logs."""

import contextlib
import re
from collections.abc import Iterable, Sequence

from goalreel.cli import read_log
from goalreel.errors import pluralize, shortened
from goalreel.workflow.job_events import Job

_TABLES = ("verify", "training_table")  # whose whole logs are shown
_INNER = ("atlas", "recording", "all", "training")  # which are not
_CAUSES, _LINES = 2, 8  # that are shown, so that the summary has at most 15 lines
_NO_CAUSE = (
    "The job was killed without a message. It may have run out of memory or disk space: lower "
    "shard_size"
)


def run_summary(finished: Iterable[Job]) -> str:
    """Return a line for each job but shards': its first output, and its program's last words."""
    lines = []
    for job in (job for job in finished if not (job.shard or job.rule.endswith(_INNER))):
        words = [line for log in job.logs for line in read_log(log)]
        if job.rule.endswith(_TABLES):
            lines += words
        else:
            lines.append(f"{job.rule:>11}  {', '.join([job.output, *words[-1:]])}")
    return "\n".join(lines)


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
    shown = sorted(causes.values(), key=len, reverse=True)[:_CAUSES]
    what = f"{pluralize(len(culprits), 'job')} failed" if culprits else "run stopped"
    lines = [f"{what}, {done:,} of {jobs:,} done"]
    if more := len(causes) - len(shown):
        lines[0] += f" ({pluralize(more, 'more cause')} in their logs)"
    for members in shown:
        job, shards = members[0], {job.shard for job in members} - {""}
        head, *rest = shortened(cause_of(job), _LINES // len(shown))
        lines += [f"{job.rule}{_listed(shards)}: {head}", *(f"  {line}" for line in rest)]
        if logs := [*job.logs, *job.system_logs]:
            lines.append(f"  log: {', '.join(logs)}")
    text = "\n".join(lines)
    if unusable := {path for f in failures for path in f["unusable"] if path not in text}:
        lines.append(f"Also not usable:{_listed(unusable)}")
    if messages and not failures:  # else they repeat these
        lines += shortened(messages[0], 2)
    return "\n".join(lines)


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


def fetch_logs(workflow, failed: Iterable[Job]) -> None:
    """Bring the logs of failed jobs that ran elsewhere, which have taken them to the storage."""
    numbers = {job.number: job for job in failed}
    for job in (job for job in workflow.dag.jobs if job.jobid in numbers):
        for log in _stored(job.log):
            with contextlib.suppress(Exception):  # whatever a provider raises
                if not workflow.local_exec:
                    workflow.async_run(log.storage_object.managed_retrieve())
            numbers[job.jobid].logs.append(str(log))


def with_addresses(workflow, text: str, unusable: set[str]) -> str:
    """Return a text with addresses in place of the local copies, which are gone by now.

    An object whose copy a job found `unusable` is deleted, for the next run to make it again.
    """
    for file in _stored(file for job in workflow.dag.jobs for file in (*job.input, *job.output)):
        address = str(file.storage_object.query)
        text = text.replace(str(file), address)
        if str(file) in unusable:
            unusable.remove(str(file))
            with contextlib.suppress(Exception):  # whatever a provider raises
                workflow.async_run(file.storage_object.managed_remove())
                text += f"\ndeleted, to be made again: {address}"
    return text


def _stored(files: Iterable) -> list:
    return [file for file in files if getattr(file, "is_storage", False)]
