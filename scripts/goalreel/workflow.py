"""What the Snakefile needs of Python besides the specs: config in, summary and causes out.

This module alone knows that it runs inside Snakemake.
"""

import atexit
import os
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from goalreel.config import load_config
from goalreel.errors import GoalreelError
from goalreel.summary import summary

_STARTED = time.time()


def checked_config(given: Mapping, schema: str) -> dict:
    """Return the complete configuration, or end the run with one message."""
    try:
        return load_config(given, Path(schema))
    except GoalreelError as error:
        sys.exit(f"goalreel: {error}")


def set_environment(scripts: str) -> None:
    """Let the rules' commands find the stages' programs in $SCRIPTS, and Snakemake's own `python`.

    `.venv/bin/snakemake` works without an activated environment then; a conda environment, which
    Snakemake activates later, still comes first.
    """
    folder = str(Path(sys.executable).parent)
    os.environ["PATH"] = os.pathsep.join([folder, os.environ.get("PATH", "")])
    os.environ["SCRIPTS"] = scripts


def print_summary(results: str, shards: Iterable[str]) -> None:
    """Print what was made, if it is all there: a run can also be asked for a single file."""
    if Path(results, "film.mp4").is_file() and Path(results, "episodes.csv").is_file():
        _print_last(summary(results, shards))


def print_causes(results: str) -> None:
    """Print the last words in the logs of this run's failed jobs."""
    causes = []
    for log in sorted(Path(results, "logs").rglob("*.log")):
        text = log.read_text(encoding="utf-8", errors="replace")
        places = [text.rfind(mark) for mark in ("error: ", "Traceback ")]
        if log.stat().st_mtime >= _STARTED and max(places) >= 0:
            causes.append(f"{log}:\n{text[max(places) :].rstrip()}")
    _print_last("\n".join(causes))


def _print_last(text: str) -> None:
    """Print once Snakemake has said all that it says, so that this is what is seen first."""
    if text:
        atexit.register(print, text, file=sys.stderr)
