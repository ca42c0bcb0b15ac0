"""What all programs share: their command line, their log lines, and how they fail."""

import argparse
import gc
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from goalreel.errors import GoalreelError, Unusable

_NO_ROOM = ("failed to map segment", "cannot allocate memory", "Cannot allocate memory")
_RESULTS = "GOALREEL_RESULTS"
_PACKAGE = Path(__file__).resolve().parent
# The folder of the Snakefile: in a wheel's package, or the checkout that this package is in.
WORKFLOW = next(
    folder for folder in (_PACKAGE / "_workflow", _PACKAGE.parents[1]) if folder.is_dir()
)


def parser(doc: str) -> argparse.ArgumentParser:
    """Return a parser whose --help is the program's docstring."""
    return argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def say(message: str) -> None:
    """Write a line to the job's log."""
    print(message, file=sys.stderr)


def note_results(results: Path) -> None:
    """Set for the jobs that this process will start where the workflow's own files are."""
    os.environ[_RESULTS] = str(results.resolve())


def results() -> Path | None:
    """Return the folder of the workflow that started this job, None of a program by hand."""
    noted = os.environ.get(_RESULTS)
    return Path(noted) if noted else None


def _deleted(error: Unusable) -> bool:
    """Delete a useless file of the workflow, so that the next run makes it; tell whether it is."""
    folder, path = results(), error.path.resolve()
    if folder is None or not path.is_relative_to(folder):
        return False  # the user's own, or a copy of what is elsewhere
    try:
        for file in error.files:
            file.unlink(missing_ok=True)
        if path.is_dir():
            path.rmdir()  # a user's file in it keeps it
    except OSError:
        return False
    return True


def _fail(message: str, **facts) -> None:
    """End with a message and exit status 1.

    For the workflow that started this job the last line of its log is a record of the failure in
    JSON: `error`, the message; `unusable`, the paths of inputs that could not be used; `stopped`,
    whether the job was told to stop.
    """
    print(f"error: {message}", file=sys.stderr)
    if results() is not None:
        print(
            json.dumps({"error": message, "unusable": [], "stopped": False, **facts}),
            file=sys.stderr,
        )
    sys.exit(1)


def _terminate(*_) -> None:
    raise _Terminated


class _Terminated(BaseException):
    """SIGTERM came."""


def run(main: Callable[[], None]) -> None:
    """Run a program's main; what a user can cause ends in one message and exit status 1."""
    # A cancelled job ends like an interrupted one: ffmpeg stopped, temporary files removed.
    signal.signal(signal.SIGTERM, _terminate)
    try:
        main()
    except Unusable as error:
        faults = (error, *error.others)
        lines = [
            f"{e.path}: could not be used and is deleted: {e.fault}; run snakemake again"
            if _deleted(e)
            else str(e)
            for e in faults
        ]
        _fail("\n".join(lines), unusable=[str(fault.path) for fault in faults])
    except (GoalreelError, OSError) as error:  # OSError: no space, no permission
        _fail(str(error))
    except MemoryError as error:
        _fail(f"out of memory {error}; a smaller shard_size needs less")
    except ImportError as error:  # a library that finds no room for itself
        if not any(words in str(error) for words in _NO_ROOM):
            raise
        _fail(f"out of memory: {str(error).strip().splitlines()[-1]}")
    except KeyboardInterrupt:
        _fail("interrupted (SIGINT)", stopped=True)
    except _Terminated:
        _fail("terminated (SIGTERM)", stopped=True)
    finally:
        gc.freeze()  # or Python searches all that was imported at its end: 0.1 s a job
