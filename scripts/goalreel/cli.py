"""Command line, log and error handling of all programs."""

import argparse
import base64
import contextlib
import faulthandler
import gc
import importlib.util
import json
import os
import signal
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from goalreel.errors import GoalreelError, Stopped, UnusableFileError

_NO_ROOM = ("failed to map segment", "cannot allocate memory", "Cannot allocate memory")
FAILURE = "goalreel failure: "  # before the JSON in a log, in which an environment may print JSON
PLANS = "GOALREEL_PLANS"  # the environment variable that jobs read
_PACKAGE = Path(__file__).resolve().parent
# The folder of the Snakefile, in an installed package or in a checkout.
WORKFLOW = next(path for path in (_PACKAGE / "_workflow", _PACKAGE.parents[1]) if path.is_dir())


def parser(doc: str) -> argparse.ArgumentParser:
    """Return a parser whose --help prints the program's docstring."""
    style = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(description=doc, formatter_class=style)


@cache
def program(stage: str) -> Callable:
    """Return a stage's program, the function in scripts/STAGE.py."""
    path = WORKFLOW / "scripts" / f"{stage}.py"
    spec = importlib.util.spec_from_file_location(f"goalreel_{stage}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, stage)


# The functions that take a thread's log lines, and its number of episodes so far.
_OUTPUT: ContextVar[tuple[Callable, Callable]] = ContextVar(
    "output", default=(lambda line: print(line, file=sys.stderr), lambda episodes: None)
)


@contextlib.contextmanager
def logging_to(log: Callable[[str], object], count: Callable[[int], object]) -> Iterator[None]:
    """Pass the log lines of this thread to `log`, and its number of episodes so far to `count`."""
    token = _OUTPUT.set((log, count))
    try:
        yield
    finally:
        _OUTPUT.reset(token)


def say(message: str) -> None:
    """Write a line to the job's log."""
    _OUTPUT.get()[0](message)


class ProgressLog:
    """Progress lines in a job's log: one per second at first, fewer in a long job."""

    def __init__(self):
        self._start = self._last = time.monotonic()

    def update(self, episodes: int, frames: int) -> None:
        """Write a line with the numbers of episodes and frames so far, if it is time."""
        _OUTPUT.get()[1](episodes)
        now = time.monotonic()
        if now - self._last > max(1, 0.02 * (now - self._start)):
            say(f"{episodes} episodes so far, {frames} frames")
            self._last = now


def read_log(path: str) -> list[str]:
    """Return the lines of a log, [] if it cannot be read."""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rstrip().splitlines()


def plans() -> dict[str, dict]:
    """Return the plans of the workflow that started this job, by results folder."""
    packed = os.environ.get(PLANS)
    return json.loads(zlib.decompress(base64.b64decode(packed))) if packed else {}


def packed(plans: Mapping[str, dict]) -> str:
    """Return plans as the environment variable PLANS, which Linux limits to 128 kB."""
    return base64.b64encode(zlib.compress(json.dumps(plans).encode())).decode()


def _deleted(error: UnusableFileError) -> bool:
    """Delete an unusable file of the workflow and return True, or return False if it is not one."""
    path = error.path.resolve()
    if not any(map(path.is_relative_to, plans())):
        return False  # the user's own file, or a copy
    try:
        for file in error.files:
            file.unlink(missing_ok=True)
        if path.is_dir():
            path.rmdir()  # fails if a user's file is in it
    except OSError:
        return False
    return True


def _fail(message: str, **facts) -> None:
    """Print a message, for a workflow also the line that `read_failure` reads, and exit with 1."""
    print(f"error: {message}", file=sys.stderr)
    if plans():
        noted = {"error": message, "unusable": [], "stopped": False} | facts
        print(f"{FAILURE}{json.dumps(noted)}", file=sys.stderr)
    sys.exit(1)


def read_failure(log: str) -> dict | None:
    """Return the error at the end of a program's log, None if there is none.

    Returns:
        `error`, the message, `unusable`, the paths of unusable inputs, and `stopped`, whether a
        signal stopped the job.
    """
    # A library may write more lines after it.
    failures = [line.rpartition(FAILURE)[2] for line in read_log(log) if FAILURE in line]
    with contextlib.suppress(LookupError, ValueError):  # there is none, or it was cut off
        return json.loads(failures[-1])
    return None


def _terminate(*_) -> None:
    raise KeyboardInterrupt("terminated (SIGTERM)")


def hang_up_as_terminated() -> None:
    """Handle SIGHUP, of a closed terminal, as SIGTERM, unless nohup ignores it."""
    if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:
        signal.signal(signal.SIGHUP, signal.getsignal(signal.SIGTERM))


def run(main: Callable[[], None]) -> None:
    """Run a program's main, and end also if an environment has left threads behind."""
    status, before = 0, threading.enumerate()
    try:
        _run(main)
    except SystemExit as stop:
        status = stop.code
    if any(not thread.daemon for thread in threading.enumerate() if thread not in before):
        sys.stderr.flush()
        os._exit(status)  # Python would wait for them
    if status:
        sys.exit(status)


def _run(main: Callable[[], None]) -> None:
    """Run a program's main, and turn errors that a user can cause into a message and status 1."""
    faulthandler.enable(sys.__stderr__)  # writes a crash to the log
    # A canceled job stops ffmpeg and removes temporary files, as an interrupted one does.
    signal.signal(signal.SIGTERM, _terminate)
    hang_up_as_terminated()
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
        fix = "Lower shard_size, or raise max_memory_mb if you set it."
        _fail(" ".join(f"Out of memory {error}".split()) + f". {fix}")
    except ImportError as error:  # a library that does not fit into memory
        if not any(words in str(error) for words in _NO_ROOM):
            raise
        _fail(f"Out of memory ({str(error).strip().splitlines()[-1]}). Lower shard_size.")
    except KeyboardInterrupt as stop:
        _fail(str(stop) or "interrupted (SIGINT)", stopped=True)
    finally:
        gc.freeze()  # skips the garbage collection at exit, which takes 0.1 s
