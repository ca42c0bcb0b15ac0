"""Memory that processes share by a file descriptor, without a name.

A child gets the descriptor when it is started (`subprocess.Popen(pass_fds=...)`), whatever Python
it runs. Nothing has a name that a killed process could leave behind: the kernel frees the memory
with the last process that has it. Collectors under other versions of Python and NumPy import this.
"""

import mmap
import os
import tempfile
from collections.abc import Mapping

import numpy as np

LINE = 64  # bytes of a cache line: no two arrays share one

Fields = Mapping[str, tuple[str, tuple[int, ...]]]
"""Arrays by name: their dtype, as NumPy spells it, and their shape, which JSON makes a list."""


def create(size: int) -> int:
    """Return the descriptor of `size` bytes of zeroes, which the caller closes."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("goalreel", os.MFD_CLOEXEC)
    else:  # macOS: a file whose name is gone already
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.truncate(fd, size)
    return fd


def layout(fields: Fields) -> tuple[dict[str, int], int]:
    """Return where each array begins, on a cache line of its own, and the bytes of all."""
    places, end = {}, 0
    for name, (dtype, shape) in fields.items():
        places[name] = end
        size = np.dtype(dtype).itemsize * int(np.prod(shape, dtype=np.int64))
        end += -(-size // LINE) * LINE
    return places, max(end, LINE)


def arrays(fd: int, fields: Fields) -> dict[str, np.ndarray]:
    """Return the arrays of a descriptor's memory, which outlive the descriptor.

    Raises ValueError if the memory is smaller than the fields need.
    """
    places, size = layout(fields)
    memory = mmap.mmap(fd, size)
    return {
        name: np.ndarray(shape, dtype, memory, places[name])
        for name, (dtype, shape) in fields.items()
    }


def shared(fields: Fields, fd: int | None = None) -> tuple[int, dict[str, np.ndarray]]:
    """Return a descriptor and its arrays: of new memory, or of a descriptor that is given."""
    fd = create(layout(fields)[1]) if fd is None else fd
    return fd, arrays(fd, fields)
