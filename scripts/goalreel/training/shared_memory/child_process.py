"""Processes that run a module of this package beside their parent, and end with it.

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
from collections.abc import Iterable
from pathlib import Path

_SCRIPTS = Path(__file__).parents[3]
_LIBRARIES = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "VECLIB_MAXIMUM")
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in _LIBRARIES}
"""The environment in which libraries that are imported later take one thread each."""
_MALLOPT = {"MALLOC_TRIM_THRESHOLD_": -1, "MALLOC_MMAP_THRESHOLD_": -3}  # malloc.h's numbers
_KEPT = 2**30  # bytes
_PATIENCE = 10.0  # seconds for a child to end by itself


def keep_freed_memory() -> None:
    """Have glibc keep what is freed, rather than give it back and take it again at each update.

    A fifth of an update's time on a CPU went into pages that were cleared anew.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        for option in _MALLOPT.values():
            libc.mallopt(option, _KEPT)


def start(python: str, module: str, *arguments: str, **options) -> subprocess.Popen:
    """Start a module, `goalreel....`, in a process group of its own: Ctrl-C is for the parent.

    The options are subprocess.Popen's. Raises OSError if the interpreter cannot be run.
    """
    path = os.pathsep.join(filter(None, (str(_SCRIPTS), os.environ.get("PYTHONPATH"))))
    kept = dict.fromkeys(_MALLOPT, str(_KEPT))
    environment = {**os.environ, **ONE_THREAD, **kept, "PYTHONPATH": path}
    return subprocess.Popen(
        [python, "-P", "-m", module, *arguments],
        **{"stdin": subprocess.PIPE, "process_group": 0, "env": environment},
        **options,
    )


def end(children: Iterable[subprocess.Popen]) -> None:
    """Close their standard inputs, and kill those that do not end by themselves."""
    children = list(children)
    for child in children:
        child.stdin.close()
    for child in children:
        try:
            child.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def parent_is_alive() -> bool:
    """Return, in a child, whether the other end of its standard input is open."""
    return not select.select([sys.stdin], [], [], 0)[0]  # nobody writes to it


def meaning(status: int) -> str:
    """Return an exit status in words."""
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
