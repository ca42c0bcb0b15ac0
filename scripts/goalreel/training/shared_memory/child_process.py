"""Processes that run a module of this package beside their parent, and end with it.

The parent holds one end of a pipe and the child has the other as its standard input: when it
closes, since the parent is done or was killed, the child ends by itself. Nothing is forked, so the
child's interpreter may be another than the parent's, and inherits no threads of PyTorch's.
"""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

_SCRIPTS = Path(__file__).parents[3]
_LIBRARIES = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "VECLIB_MAXIMUM")
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in _LIBRARIES}
"""The environment in which libraries that are imported later take one thread each: more would
only stand in the way of other processes."""


def start(python: str, module: str, *arguments: str, **options) -> subprocess.Popen:
    """Start a module, `goalreel....`, in a process group of its own: Ctrl-C is for the parent.

    options: of subprocess.Popen. Raises OSError if the interpreter cannot be run.
    """
    path = os.pathsep.join(filter(None, (str(_SCRIPTS), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": path}
    return subprocess.Popen(
        [python, "-P", "-m", module, *arguments],
        **{"stdin": subprocess.PIPE, "process_group": 0, "env": environment},
        **options,
    )


def parent_is_there() -> bool:
    """Tell a child whether the other end of its standard input is open; nobody writes to it."""
    return not select.select([sys.stdin], [], [], 0)[0]


def told(status: int) -> str:
    """Return what an exit status says."""
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
