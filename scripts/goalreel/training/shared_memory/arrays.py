"""Arrays in memory that processes share by a file descriptor, without a name.

A child gets the descriptor when it is started (`subprocess.Popen(pass_fds=...)`), whatever Python
it runs. Nothing has a name that a killed process could leave behind: the kernel frees the memory
with the last process that has it. Collectors under other versions of Python and NumPy import this.
"""

import mmap
import os
import tempfile
from collections.abc import Mapping

import numpy as np

_LINE = 64  # bytes of a cache line: no two arrays share one

Fields = Mapping[str, tuple[str, tuple[int, ...]]]
"""Arrays by name: their dtype, as NumPy spells it, and their shape, which JSON makes a list."""


def shared_arrays(fields: Fields, fd: int | None = None) -> tuple[int, dict[str, np.ndarray]]:
    """Return a descriptor, which the caller closes, and its arrays, which outlive it.

    The memory is new, of zeroes, or that of a descriptor that is given. Raises ValueError if that
    is smaller than the fields need.
    """
    places, size = {}, 0
    for name, (dtype, shape) in fields.items():
        places[name] = size
        size += -(-np.dtype(dtype).itemsize * int(np.prod(shape)) // _LINE) * _LINE
    if fd is None:
        if hasattr(os, "memfd_create"):
            fd = os.memfd_create("goalreel", os.MFD_CLOEXEC)
        else:  # macOS: a file whose name is gone already
            with tempfile.TemporaryFile() as file:
                fd = os.dup(file.fileno())
        os.truncate(fd, size)
    memory = mmap.mmap(fd, size)
    return fd, {
        name: np.ndarray(shape, dtype, memory, places[name])
        for name, (dtype, shape) in fields.items()
    }
