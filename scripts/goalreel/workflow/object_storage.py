"""Results on object storage, as the end of a run speaks of them: by their addresses.

Snakemake brings inputs from there and takes outputs there, job by job; the stages see files. So
nothing here moves a film. What is here knows Snakemake's jobs and their files.
"""

import contextlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from goalreel.errors import GoalreelError
from goalreel.workflow.failure_summary import Failure
from goalreel.workflow.stages import STAGES

_LABELS = {"concat": "film", "episodes": "tables"}


def stored_summary(workflow) -> str:
    """Return a line for the film, for the tables and for each view that this run stored."""
    addresses: dict[str, list[str]] = {}
    for job in workflow.dag.needrun_jobs(exclude_finished=False):
        rule = job.rule.name
        if rule in _LABELS or (rule in STAGES and STAGES[rule].summary):
            label = _LABELS.get(rule, rule)
            addresses.setdefault(label, []).extend(
                str(file.storage_object.query) for file in _stored(job.output)
            )
    return "\n".join(f"{name:>8}  {', '.join(some)}" for name, some in addresses.items() if some)


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
    lacking = [path for path in needed if path.resolve() not in sent]
    if lacking:
        workflow.cleanup_source_archive()
        more = f" and {len(lacking) - 1:,} more" if lacking[1:] else ""
        raise GoalreelError(
            f"the jobs are sent what git knows of in {Path.cwd()}, and would lack "
            f"{lacking[0]}{more}; start snakemake at the top of a git checkout, and `git add` "
            f"what is new there"
        )


def with_stored_logs(workflow, failure: Failure) -> Failure:
    """Return a job's failure with its logs on object storage as files of this machine.

    A job on this machine has left them here; one elsewhere has taken them to the storage, from
    where they are brought.
    """
    logs = list(failure.logs)
    for job in workflow.dag.jobs:
        if job.jobid != failure.job:
            continue
        for file in _stored(job.log):
            if not workflow.local_exec:
                _done(workflow, file.storage_object.managed_retrieve())
            logs.append(str(file))
    return replace(failure, logs=logs)


def delete_unusable(workflow, failures: Iterable[Failure]) -> str:
    """Delete the objects whose copies a job could not use, for the next run to make them anew.

    A stage deletes such a file itself where it is among the results; of an object it has but a
    copy. Returns a line for each that is deleted.
    """
    unusable = {path for failure in failures for r in failure.records for path in r["unusable"]}
    deleted = [
        f"deleted, to be made again: {file.storage_object.query}\n"
        for path, file in _stored_files(workflow).items()
        if path in unusable and _done(workflow, file.storage_object.managed_remove())
    ]
    return "".join(deleted)


def with_addresses(workflow, text: str) -> str:
    """Return a text with addresses in place of the local copies, which are gone by now."""
    for path, file in _stored_files(workflow).items():
        text = text.replace(path, str(file.storage_object.query))
    return text


def _stored_files(workflow) -> dict[str, object]:
    files = (file for job in workflow.dag.jobs for file in _stored((*job.input, *job.output)))
    return {str(file): file for file in files}


def _stored(files: Iterable) -> list:
    """Return those files that are on object storage, as Snakemake's objects."""
    return [file for file in files if getattr(file, "is_storage", False)]


def _done(workflow, transfer) -> bool:
    """Let the storage do something, a coroutine of Snakemake's; tell whether it could."""
    # Whatever a provider raises, a run that failed still names its causes.
    with contextlib.suppress(Exception):
        workflow.async_run(transfer)
        return True
    return False
