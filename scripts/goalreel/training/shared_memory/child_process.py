"""Child processes of this package, which end with their parent.

A child's standard input is a pipe from the parent. When it closes, because the parent ended or was
killed, the child ends. Children are not forked, so their interpreter may differ from the parent's,
and they inherit none of PyTorch's threads.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterable
from pathlib import Path

from goalreel.errors import GoalreelError, quoted

_SCRIPTS = Path(__file__).parents[3]
_LIBRARIES = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "VECLIB_MAXIMUM")
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in _LIBRARIES}
"""Environment variables for libraries imported later, so that they use one thread."""
BAD_INPUT = 78  # exit status of a child with a complete message; EX_CONFIG of sysexits.h
_MALLOPT = {"MALLOC_TRIM_THRESHOLD_": -1, "MALLOC_MMAP_THRESHOLD_": -3}  # malloc.h's numbers
_KEPT = 2**30  # bytes
_PATIENCE = 10.0  # seconds for a child to end
_TAIL = 2000  # characters of stderr in a message


def keep_freed_memory() -> None:
    """Make glibc keep freed memory instead of returning it to the system.

    On a CPU, a fifth of the time of an update went into clearing new pages.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        for option in _MALLOPT.values():
            libc.mallopt(option, _KEPT)


class Child:
    """A module that runs in its own process group, so that only the parent gets Ctrl-C.

    Its output goes to files, because a pipe without a reader would fill up.
    """

    def __init__(self, python: str, module: str, *arguments: str, fds: Iterable[int] = ()):
        """Start it with `fds` open. Raises GoalreelError if the interpreter cannot run."""
        path = os.pathsep.join(filter(None, (str(_SCRIPTS), os.environ.get("PYTHONPATH"))))
        kept = dict.fromkeys(_MALLOPT, str(_KEPT))
        self.stdout, self.stderr = (tempfile.TemporaryFile() for _ in range(2))  # noqa: SIM115
        try:
            self.process = subprocess.Popen(
                [python, "-P", "-m", module, *arguments],
                **{"stdin": subprocess.PIPE, "stdout": self.stdout, "stderr": self.stderr},
                **{"pass_fds": tuple(fds), "process_group": 0},
                env={**os.environ, **ONE_THREAD, **kept, "PYTHONPATH": path},
            )
        except OSError as error:
            raise GoalreelError(
                f"pixels.python: {quoted(python)} cannot run ({error.strerror}). Correct the path."
            ) from None

    def has_ended(self, name: str) -> bool:
        """Return whether it has ended. Raises GoalreelError, with its stderr, if it failed."""
        status = self.process.poll()
        if not status:
            return status == 0
        message = _text(self.stderr)[-_TAIL:]
        if status == BAD_INPUT:
            raise GoalreelError(message)
        way = f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        message = textwrap.indent(message or "no message", "  ")
        raise GoalreelError(f"{name} failed ({way}).\n{message}")

    def printed(self) -> str:
        """Return its output so far."""
        return _text(self.stdout)


def _text(file) -> str:
    file.seek(0)
    return file.read().decode(errors="replace").strip()


def end(children: Iterable[Child]) -> None:
    """Close the standard inputs, and kill children that do not end in time."""
    children = list(children)
    for child in children:
        child.process.stdin.close()
    for child in children:
        try:
            child.process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            child.process.kill()
            child.process.wait()
        child.stdout.close()
        child.stderr.close()


def parent_is_alive() -> bool:
    """Return, in a child, whether the other end of its standard input is open."""
    return not select.select([sys.stdin], [], [], 0)[0]  # readable only at its end
