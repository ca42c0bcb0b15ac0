"""Weights in shared memory, which the learner writes and collectors read without waiting.

It is a sequence lock (H.-J. Boehm, "Can seqlocks get along with programming language memory
models?", 2012): a version counter is odd while the learner writes. A reader copies again if the
counter is odd, or if it changed during the copy.
"""

import time
from collections.abc import Callable, Mapping

import numpy as np

from goalreel.training.shared_memory.arrays import Fields, shared_arrays
from goalreel.training.shared_memory.ring import fence

Weights = Mapping[str, np.ndarray]
_VERSION = "version"
_PAUSE = 0.0002  # seconds between two tries to read


class AbandonedError(Exception):
    """The writer ended while it was writing."""


class SharedWeights:
    """Named arrays that one process writes as a whole."""

    def __init__(self, fields: Fields, fd: int | None = None):
        """Create the memory, whose descriptor is `fd`, or open that of a descriptor."""
        self.fd, self._fields = shared_arrays({_VERSION: ("<i8", (1,)), **fields}, fd)
        self._version = self._fields.pop(_VERSION)

    @property
    def version(self) -> int:
        """The number of completed writes."""
        return int(self._version[0]) // 2

    def write(self, weights: Weights) -> None:
        """Write all arrays; only one process may do so."""
        self._version[0] += 1
        fence()  # the counter is odd before an array changes
        for name, place in self._fields.items():
            place[...] = weights[name]
        fence()  # all arrays have changed before the counter is even
        self._version[0] += 1

    def read(self, alive: Callable[[], bool]) -> tuple[int, dict[str, np.ndarray]]:
        """Return the latest version and a copy of its arrays.

        Raises AbandonedError if the writer is not `alive` and left an incomplete write.
        """
        while True:
            before = int(self._version[0])
            fence()
            if before % 2:
                if not alive() and before == int(self._version[0]):
                    raise AbandonedError
                time.sleep(_PAUSE)
                continue
            copy = {name: place.copy() for name, place in self._fields.items()}
            fence()
            if before == int(self._version[0]):
                return before // 2, copy


def fields_of(weights: Weights) -> Fields:
    """Return the dtypes and shapes of weights."""
    return {name: (array.dtype.str, array.shape) for name, array in weights.items()}
