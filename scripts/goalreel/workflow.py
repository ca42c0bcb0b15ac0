"""What the Snakefile needs of Python besides the specs: config in, summary and causes out.

This module alone knows that it runs inside Snakemake.
"""

import atexit
import gc
import os
import re
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from goalreel.config import load_config
from goalreel.encoders import Choice
from goalreel.errors import GoalreelError
from goalreel.object_storage import (
    check_sources,
    made_in_storage,
    readable_log,
    stored_summary,
    told_of_storage,
)
from goalreel.program import note_results
from goalreel.sources import note_sources
from goalreel.summary import summary, views

_STARTED = time.time()
_LAST_LINES = 10
_SOURCES = ("scripts", "rules", "envs", "docs", "tests", "profiles", "benchmarks", ".git", ".ci")


def checked_config(given: Mapping, schema: str) -> dict:
    """Return the complete configuration, or end the run with one message."""
    try:
        config = load_config(given, Path(schema))
        check_results(config["results"], Path(schema).parent)
    except GoalreelError as error:
        sys.exit(f"goalreel: {error}")
    return config


def check_results(results: str, base: Path) -> None:
    """Raise GoalreelError if the results would stand among the workflow's own files, or on a file.

    An address is refused too: Snakemake would make a folder of that name.
    A view's folder is emptied before it is made: `results: docs` would cost docs/report.
    """
    place, base = Path(results).resolve(), base.resolve()
    if "://" in results:
        raise GoalreelError(
            f"the configuration has a fault:\n  results: '{results}' is an address, not a folder; "
            f"for object storage keep the folder and give snakemake --default-storage-provider "
            f"and --default-storage-prefix (README, Object storage)"
        )
    if place == base or any(place.is_relative_to(base / name) for name in _SOURCES):
        fault = "is where the workflow's own files stand"
    elif place.exists() and not place.is_dir():
        fault = "is a file"
    else:
        return
    raise GoalreelError(
        f"the configuration has a fault:\n  results: '{results}' {fault}; choose another folder"
    )


def set_environment(scripts: str, results: str) -> None:
    """Let the rules' commands find the stages' programs in $SCRIPTS, and Snakemake's own `python`.

    `.venv/bin/snakemake` works without an activated environment then; a conda environment, which
    Snakemake activates later, still comes first.
    """
    # Where pandas is installed, Snakemake imports it, which takes a third of a second, to look for
    # data frames among the jobs' parameters (persistence, 9.27). Here they are texts.
    sys.modules.setdefault("pandas", None)
    # What is imported stays until the end. The garbage collector need not look through it at every
    # turn, nor once more when Python ends, which takes a quarter of a second.
    gc.freeze()
    folder = str(Path(sys.executable).parent)
    os.environ["PATH"] = os.pathsep.join([folder, os.environ.get("PATH", "")])
    os.environ["SCRIPTS"] = scripts
    note_sources(Path(scripts))
    note_results(Path(results))
    # Nothing is written beside the sources, where many nodes may read them at the same time.
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


def check_start(workflow, scripts: str, config: Mapping) -> None:
    """End a run whose jobs would not find the workflow's own files, or the user's policy."""
    folder, policy = Path(scripts), config["policy"].get("file")
    programs = [*folder.rglob("*.py"), *folder.glob("goalreel/templates/*")]
    needed = [folder.parent / "config.schema.yaml", *sorted(programs)]
    try:
        check_sources(workflow, [*needed, *([Path(policy)] if policy else [])])
    except GoalreelError as error:
        sys.exit(f"goalreel: {error}")


def print_summary(results: str, shards: Iterable[str], encoder: Choice, workflow) -> None:
    """Print what this run made: the film, if it made it, and the views.

    workflow: Snakemake's. Of results on object storage it tells the addresses.
    """
    _end_waits()
    _print_last(stored_summary(made_in_storage(workflow)))
    film, table = Path(results, "film.mp4"), Path(results, "episodes.csv")
    try:
        if film.is_file() and table.is_file() and film.stat().st_mtime >= _STARTED:
            _print_last(summary(results, shards, encoder))
        _print_last(views(results, _STARTED))
    except (GoalreelError, OSError) as error:
        _print_last(f"no summary: {error}")


def print_causes(logs: Iterable[str], workflow) -> None:
    """Print why jobs failed: what their own logs end with.

    logs: Snakemake's, of this run. workflow: Snakemake's.
    """
    _end_waits()
    text = "".join(Path(log).read_text(encoding="utf-8", errors="replace") for log in logs)
    told = r"^ *Error in rule \w+:$.*?^ +log: (.+?) \(check log file"  # a group's are indented
    failed = re.findall(told, text, re.M | re.S)
    causes = {log: _cause(readable_log(workflow, log)) for log in dict.fromkeys(failed)}
    told = "\n".join(f"{log}:\n{cause}" for log, cause in causes.items())
    _print_last(told_of_storage(workflow, told))


def _end_waits() -> None:
    """Let the process end as soon as Snakemake has ended; no job is left here.

    Its scheduler sets a timer whenever it starts a job, to look for more a second later
    (job_scheduler.py, 9.27: the limit of jobs per timespan), and nothing cancels them: after a
    short last job a run would sit idle for up to a second. The other wait is Python's own, see
    `set_environment`.
    """
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()
    gc.freeze()


def _cause(log: Path) -> str:
    said = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    # The program's last words; before them may stand what ffmpeg or NumPy warned of.
    marks = [match.start() for match in re.finditer(r"^(error: |Traceback )", said, re.M)]
    if marks:
        return said[marks[-1] :].rstrip()
    last = "".join(f"{line}\n" for line in said.splitlines()[-_LAST_LINES:])
    return f"{last}error: the job gave no cause: killed, perhaps for want of memory"


def _print_last(text: str) -> None:
    """Print once Snakemake has said all that it says, so that this is what is seen first."""
    if text:
        atexit.register(print, text, file=sys.stderr)
