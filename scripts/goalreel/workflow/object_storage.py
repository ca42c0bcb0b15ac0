"""Results on object storage, as the end of a run tells of them: by their addresses.

Snakemake brings inputs from there and takes outputs there, job by job; the stages see files. So
nothing here moves a film. What is here knows Snakemake's jobs and their files, and is called by
workflow alone.
"""

import contextlib
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path, PurePosixPath

from goalreel.errors import GoalreelError
from goalreel.workflow.failure_summary import Failure

# What the summary calls a result, by the last part of its name.
_NAMES = {
    "film.mp4": "film",
    "episodes.csv": "tables",
    "attempts.csv": "tables",
    "clips": "clips",
    "grid.mp4": "grid",
    "swarm.mp4": "swarm",
    "phase.mp4": "phase",
    "poster.png": "stills",
    "contact_sheet.png": "stills",
    "preview.webp": "stills",
    "learning.mp4": "learning",
    "report": "report",
}


def made_in_storage(workflow) -> list[str]:
    """Return the addresses of what this run made on object storage; none for a run on disk."""
    jobs = workflow.dag.needrun_jobs(exclude_finished=False)
    return [str(file.storage_object.query) for file in _stored(job.output for job in jobs)]


def stored_summary(addresses: Iterable[str]) -> str:
    """Return a line for the film, for the tables and for each view among the addresses."""
    told: dict[str, list[str]] = {}
    for address in addresses:
        name = _NAMES.get(PurePosixPath(address).name)
        if name:
            told.setdefault(name, []).append(address)
    order = list(dict.fromkeys(_NAMES.values()))
    return "\n".join(f"{name:>8}  {', '.join(told[name])}" for name in order if name in told)


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
    found = []
    for job in workflow.dag.jobs:
        same = (
            job.rule.name == failure.rule and job.wildcards_dict.get("shard", "") == failure.shard
        )
        for file in _stored([job.log]) if same else ():
            if not workflow.local_exec:
                _done(workflow, file.storage_object.managed_retrieve())
            found.append(str(file))
    return replace(failure, logs=[*failure.logs, *found])


def told_of_storage(workflow, text: str) -> str:
    """Return jobs' words with addresses in place of the local copies, which are gone by now.

    A stage that finds a file unusable deletes it, if it stands among the results; of an object it
    has a copy alone. So the object is deleted here, for the next run to make it anew, and the words
    say so.
    """
    files = _stored((*job.input, *job.output) for job in workflow.dag.jobs)
    for path, file in {str(file): file for file in files}.items():
        if path not in text:
            continue
        address = file.storage_object.query
        useless = (
            rf"error: {re.escape(path)}: cannot be used: (.*); delete it and run snakemake again"
        )
        if re.search(useless, text) and _done(workflow, file.storage_object.managed_remove()):
            told = f"error: {address}: could not be used and is deleted: "
            text = re.sub(useless, lambda m, told=told: f"{told}{m[1]}; run snakemake again", text)
        text = text.replace(path, address)
    return text


def _stored(files: Iterable[Iterable]) -> list:
    """Return those files that stand on object storage, as Snakemake's objects."""
    return [file for several in files for file in several if getattr(file, "is_storage", False)]


def _done(workflow, moving) -> bool:
    """Tell whether the storage did something, which is given as a coroutine of Snakemake's."""
    # Whatever a provider raises, a run that failed still tells of its causes.
    with contextlib.suppress(Exception):
        workflow.async_run(moving)
        return True
    return False
