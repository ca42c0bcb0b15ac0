"""Weights in shared memory: the learner writes them, collectors take the latest, and none waits.

A version counter shows whether a copy is whole: it is odd while the learner writes, and a reader
that finds it odd, or another than before its copy, copies again (a sequence lock: H.-J. Boehm, "Can
seqlocks get along with programming language memory models?", 2012).
"""

import time
from collections.abc import Callable, Mapping

import numpy as np

from goalreel.training.shared_memory.arrays import Fields, shared_arrays
from goalreel.training.shared_memory.ring import fence

_VERSION = "version"
_PAUSE = 0.0002  # seconds between two tries to read a set that is being written


class AbandonedError(Exception):
    """The writer has ended in the midst of a set, and no reader will see another."""


class SharedWeights:
    """Arrays by name, of which one process writes whole sets.

    Attributes:
        fd: the descriptor of its memory, for the other processes.
    """

    def __init__(self, fields: Fields, fd: int | None = None):
        """Make room for the weights, or join that of a descriptor."""
        self.fd, self._fields = shared_arrays({_VERSION: ("<i8", (1,)), **fields}, fd)
        self._version = self._fields.pop(_VERSION)

    @property
    def version(self) -> int:
        """The number of sets that have been written."""
        return int(self._version[0]) // 2

    def write(self, weights: Mapping[str, np.ndarray]) -> None:
        """Publish a set; one process alone may."""
        self._version[0] += 1
        fence()  # it is odd before anything changes
        for name, place in self._fields.items():
            place[...] = weights[name]
        fence()  # all has changed before it is even
        self._version[0] += 1

    def read(self, alive: Callable[[], bool]) -> tuple[int, dict[str, np.ndarray]]:
        """Return the version of the latest whole set, and a copy of it.

        Raises AbandonedError if the writer is not `alive`, and left a set that is not whole.
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


def fields_of(weights: Mapping[str, np.ndarray]) -> Fields:
    """Return the fields that hold such weights."""
    return {name: (array.dtype.str, array.shape) for name, array in weights.items()}
