"""Child processes of this package beside their parent, which end with it.

The parent holds one end of a pipe and the child has the other as its standard input: when that
closes, since the parent is done or was killed, the child ends by itself. Nothing is forked, so the
child's interpreter may be another than the parent's, and inherits no threads of PyTorch's.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from goalreel.errors import GoalreelError

_SCRIPTS = Path(__file__).parents[3]
_LIBRARIES = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "VECLIB_MAXIMUM")
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in _LIBRARIES}
"""The environment in which libraries that are imported later take one thread each."""
BAD_INPUT = 78  # the exit status of a child whose error message says all; EX_CONFIG of sysexits.h
_MALLOPT = {"MALLOC_TRIM_THRESHOLD_": -1, "MALLOC_MMAP_THRESHOLD_": -3}  # malloc.h's numbers
_KEPT = 2**30  # bytes
_PATIENCE = 10.0  # seconds for a child to end by itself
_TAIL = 2000  # characters of a child's stderr in a message


def keep_freed_memory() -> None:
    """Have glibc keep what is freed, rather than give it back and take it again at each update.

    A fifth of an update's time on a CPU went into pages that were cleared anew.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        for option in _MALLOPT.values():
            libc.mallopt(option, _KEPT)


class Child:
    """A module that runs in a process group of its own: Ctrl-C is for the parent.

    What it prints goes into files, since a pipe that nobody reads fills up.

    Attributes:
        process: the process.
        stdout: the file of what it prints.
        stderr: the file of its messages.
    """

    def __init__(self, python: str, module: str, *arguments: str, fds: Iterable[int] = ()):
        """Start it; `fds` stay open in it. Raises GoalreelError if that interpreter cannot run."""
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
                f"pixels.python: {python} cannot be run: {error.strerror}"
            ) from None

    def has_ended(self, name: str) -> bool:
        """Return whether it has done its work. Raises GoalreelError, with its stderr, if not."""
        status = self.process.poll()
        if not status:
            return status == 0
        message = _text(self.stderr)[-_TAIL:]
        if status == BAD_INPUT:
            raise GoalreelError(message)
        way = f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        raise GoalreelError(f"{name} failed ({way}); its stderr: {message or 'empty'}")

    def printed(self) -> str:
        """Return what it has printed."""
        return _text(self.stdout)


def _text(file) -> str:
    file.seek(0)
    return file.read().decode(errors="replace").strip()


def end(children: Iterable[Child]) -> None:
    """Close their standard inputs, and kill those that do not end by themselves."""
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
    return not select.select([sys.stdin], [], [], 0)[0]  # nobody writes to it
