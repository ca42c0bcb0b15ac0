"""What all programs share: their command line, their log lines, and how they fail."""

import argparse
import contextlib
import gc
import importlib.util
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from goalreel.errors import GoalreelError, Stopped, UnusableFileError

_NO_ROOM = ("failed to map segment", "cannot allocate memory", "Cannot allocate memory")
PLANS = "GOALREEL_PLANS"  # for the jobs that a workflow starts
_TAIL = 4096  # bytes of a log's end that are read
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


@cache
def program(stage: str) -> Callable:
    """Return a stage's program, the function in scripts/STAGE.py."""
    path = WORKFLOW / "scripts" / f"{stage}.py"
    spec = importlib.util.spec_from_file_location(f"goalreel_{stage}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, stage)


def _print(message: str) -> None:
    print(message, file=sys.stderr)


# Where a thread's log lines go, and its numbers of episodes so far.
_OUTPUT: ContextVar[tuple[Callable, Callable]] = ContextVar(
    "output", default=(_print, lambda episodes: None)
)


@contextlib.contextmanager
def logging_to(log: Callable[[str], object], count: Callable[[int], object]) -> Iterator[None]:
    """Give the log lines of this thread to `log`, and its numbers of episodes to `count`."""
    token = _OUTPUT.set((log, count))
    try:
        yield
    finally:
        _OUTPUT.reset(token)


def say(message: str) -> None:
    """Write a line to the job's log."""
    _OUTPUT.get()[0](message)


class ProgressLog:
    """Lines in a job's log about how far it is: one a second at first, fewer in a long job."""

    def __init__(self):
        """Begin now."""
        self._start = self._last = time.monotonic()

    def update(self, episodes: int, frames: int) -> None:
        """Write a line if it is time, with the numbers of episodes and frames so far."""
        _OUTPUT.get()[1](episodes)
        now = time.monotonic()
        if now - self._last > max(1, 0.02 * (now - self._start)):
            say(f"{episodes} episodes so far, {frames} frames")
            self._last = now


def read_log(path: str) -> list[str]:
    """Return the last lines of a log, none if there is no such file."""
    try:
        with Path(path).open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(size - _TAIL, 0))
            text = stream.read().decode(errors="replace")
    except OSError:
        return []
    return text.rstrip().splitlines()


def plans() -> dict[str, dict]:
    """Return what the workflow which started this job notes of its runs, by results folder."""
    return json.loads(os.environ.get(PLANS, "{}"))


def results_folders() -> list[Path]:
    """Return the results of the workflow that started this job: a folder for each of its runs."""
    return list(map(Path, plans()))


def _deleted(error: UnusableFileError) -> bool:
    """Delete a useless file of the workflow, so that the next run makes it; tell whether it is."""
    path = error.path.resolve()
    if not any(map(path.is_relative_to, results_folders())):
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

    For the workflow that started this job the log ends in a line for `read_failure`.
    """
    print(f"error: {message}", file=sys.stderr)
    if results_folders():
        noted = {"error": message, "unusable": [], "stopped": False} | facts
        print(json.dumps(noted), file=sys.stderr)
    sys.exit(1)


def read_failure(log: str) -> dict | None:
    """Return what a program has noted of its failure at the end of its log, None for nothing.

    Returns:
        `error`, the message; `unusable`, the paths of inputs that could not be used; `stopped`,
        whether the job was told to stop.
    """
    try:
        text = Path(log).read_text(encoding="utf-8", errors="replace")
        # A library may write something after it.
        return json.loads(text[text.rindex('{"error": ') :].splitlines()[0])
    except (OSError, ValueError):
        return None


def _terminate(*_) -> None:
    raise KeyboardInterrupt("terminated (SIGTERM)")


def run(main: Callable[[], None]) -> None:
    """Run a program's main; what a user can cause ends in one message and exit status 1."""
    # A cancelled job ends like an interrupted one: ffmpeg stopped, temporary files removed.
    signal.signal(signal.SIGTERM, _terminate)
    try:
        main()
    except UnusableFileError as error:
        errors = (error, *error.others)
        deleted = "goalreel deleted it, and the next run makes it again."
        lines = [e.with_fix(deleted) if _deleted(e) else str(e) for e in errors]
        _fail("\n".join(lines), unusable=[str(error.path) for error in errors])
    except (GoalreelError, OSError) as error:  # OSError: no space, no permission
        _fail(str(error), stopped=isinstance(error, Stopped))
    except MemoryError as error:
        _fail(" ".join(f"Out of memory {error}".split()) + ". Lower shard_size.")
    except ImportError as error:  # a library that finds no room for itself
        if not any(words in str(error) for words in _NO_ROOM):
            raise
        _fail(f"Out of memory ({str(error).strip().splitlines()[-1]}). Lower shard_size.")
    except KeyboardInterrupt as stop:
        _fail(str(stop) or "interrupted (SIGINT)", stopped=True)
    finally:
        gc.freeze()  # or Python searches all that was imported at its end: 0.1 s a job
