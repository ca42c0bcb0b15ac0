"""Results on object storage, as the end of a run speaks of them: by their addresses.

Snakemake brings inputs from there and takes outputs there, job by job; the stages see files.
"""

import contextlib
from collections.abc import Iterable
from pathlib import Path

from goalreel.errors import GoalreelError
from goalreel.workflow.job_events import Job


def stored_summary(workflow) -> str:
    """Return a line for each job but shards' with what it stored."""
    jobs = workflow.dag.needrun_jobs(exclude_finished=False)
    stored = {job.rule.name: _stored(job.output) for job in jobs if not job.wildcards_dict}
    return "\n".join(f"{rule:>8}  {', '.join(new.values())}" for rule, new in stored.items() if new)


def check_sources(workflow, needed: Iterable[Path]) -> None:
    """Raise GoalreelError if jobs on other machines would lack files that they need.

    Where no disk is shared Snakemake sends its jobs what git knows of in the folder where it runs,
    and no more; each job would fail then, far from here.
    """
    try:
        _ = workflow.source_archive
    except AssertionError:  # nothing is sent: the jobs read the files themselves
        return
    sent = {Path(name).resolve() for name in workflow.dag.get_sources() if name[:2] != ".."}
    if lacking := [path for path in needed if path.resolve() not in sent]:
        workflow.cleanup_source_archive()
        more = f" and {len(lacking) - 1:,} more" if lacking[1:] else ""
        raise GoalreelError(
            f"the jobs are sent what git knows of in {Path.cwd()}, and would lack {lacking[0]}"
            f"{more}; start snakemake at the top of a git checkout, and `git add` what is new there"
        )


def fetch_logs(workflow, failed: Iterable[Job]) -> None:
    """Bring the logs of failed jobs that ran elsewhere, which have taken them to the storage."""
    numbers = {job.number: job for job in failed}
    for job in workflow.dag.jobs:
        for file in _stored(job.log) if job.jobid in numbers else ():
            if not workflow.local_exec:
                _is_done(workflow, file.storage_object.managed_retrieve())
            numbers[job.jobid].logs.append(str(file))


def with_addresses(workflow, text: str, failed: Iterable[Job]) -> str:
    """Return a text with addresses in place of the local copies, which are gone by now.

    An object whose copy a job could not use is deleted, for the next run to make it again, and
    named. A stage deletes such a file itself where it is among the results.
    """
    unusable = {path for job in failed for failure in job.failures for path in failure["unusable"]}
    for job in workflow.dag.jobs:
        for file, address in _stored((*job.input, *job.output)).items():
            text = text.replace(str(file), address)
            if str(file) in unusable:
                unusable.remove(str(file))
                if _is_done(workflow, file.storage_object.managed_remove()):
                    text += f"\ndeleted, to be made again: {address}"
    return text


def _stored(files: Iterable) -> dict:
    """Return the addresses of those files, Snakemake's objects, that are on object storage."""
    stored = (file for file in files if getattr(file, "is_storage", False))
    return {file: str(file.storage_object.query) for file in stored}


def _is_done(workflow, transfer) -> bool:
    """Let the storage do something, a coroutine of Snakemake's; return whether it could."""
    # Whatever a provider raises, a run that failed still names its causes.
    with contextlib.suppress(Exception):
        workflow.async_run(transfer)
        return True
    return False
