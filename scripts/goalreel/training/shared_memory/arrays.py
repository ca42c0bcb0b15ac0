"""Arrays in memory that processes share by a file descriptor, without a name.

A child gets the descriptor when it is started (`subprocess.Popen(pass_fds=...)`), whatever Python
it runs. Nothing has a name that a killed process could leave behind: the kernel frees the memory
with the last process that has it. Collectors under other versions of Python and NumPy import this.
"""

import mmap
import os
from collections.abc import Mapping

import numpy as np

_LINE = 64  # bytes of a cache line, which two arrays never share

Fields = Mapping[str, tuple[str, tuple[int, ...]]]
"""Dtype and shape of arrays, by name."""


def shared_arrays(fields: Fields, fd: int | None = None) -> tuple[int, dict[str, np.ndarray]]:
    """Create shared memory of zeros, or open that of a file descriptor.

    Returns the descriptor, which the caller closes, and the arrays, which stay valid after that.
    Raises ValueError if the memory of the descriptor is too small.
    """
    places, size = {}, 0
    for name, (dtype, shape) in fields.items():
        places[name] = size
        size += -(-np.dtype(dtype).itemsize * int(np.prod(shape)) // _LINE) * _LINE
    if fd is None:
        fd = os.memfd_create("goalreel", os.MFD_CLOEXEC)
        os.truncate(fd, size)
    memory = mmap.mmap(fd, size)
    arrays = {n: np.ndarray(shape, d, memory, places[n]) for n, (d, shape) in fields.items()}
    return fd, arrays
