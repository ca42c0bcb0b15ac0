"""A lock-free ring buffer in shared memory, with one writer and one reader process.

Only the writer changes `head`, the number of items ever written. Only the reader changes `tail`,
the number ever taken. The writer fills an item, a view of the shared arrays, before it raises
`head`, and does not overwrite it before the reader has raised `tail`.

This is correct if other processors see writes in order, and if aligned 64-bit numbers are read and
written atomically, as on 64-bit processors. An x86-64 processor keeps the order of writes, and of
reads (Intel SDM, volume 3A, 8.2.2). memcpy must end non-temporal writes with a fence, as glibc's
does. Other processors, such as Arm's, do not keep the order. There, `fence` takes and releases a
private lock twice (Arm ARM, B2.3: a release is ordered before the next acquire). A test moves
millions of items with checksums between two processes.
"""

import platform
import threading
from collections.abc import Mapping

import numpy as np

from goalreel.training.shared_memory.arrays import Fields, shared_arrays

_ORDERED = platform.machine() in ("x86_64", "AMD64")  # total store order


class Ring:
    """A ring of items, each a row of every field."""

    def __init__(self, fields: Fields, capacity: int, fd: int | None = None):
        """Create a ring of `capacity` items, whose descriptor is `fd`, or open that of one."""
        rows = {name: (dtype, (capacity, *shape)) for name, (dtype, shape) in fields.items()}
        counters = {"head": ("<i8", (1,)), "tail": ("<i8", (1,))}
        self.capacity = capacity
        self.fd, self._fields = shared_arrays(counters | rows, fd)
        self._head, self._tail = self._fields.pop("head"), self._fields.pop("tail")

    def __len__(self) -> int:
        """Return the number of items that were written and not taken."""
        return int(self._head[0]) - int(self._tail[0])

    def items(self, most: int) -> dict[str, np.ndarray]:
        """Return at most `most` contiguous items, which stay valid until `release`.

        They end at the end of the arrays.
        """
        tail = int(self._tail[0])
        written = int(self._head[0]) - tail
        fence()  # read the items after `head`
        start = tail % self.capacity
        end = min(start + min(most, written), self.capacity)
        return {name: field[start:end] for name, field in self._fields.items()}

    def release(self, count: int) -> None:
        """Give the first `count` items of the last `items` back to the writer."""
        fence()  # read the items before raising `tail`
        self._tail[0] += count

    def push(self, rows: Mapping[str, np.ndarray]) -> int:
        """Write as many of the first rows as fit, and return their number."""
        head, count = int(self._head[0]), len(next(iter(rows.values())))
        count = min(count, self.capacity - (head - int(self._tail[0])))
        fence()  # write the items after the reader has read the old ones
        places = (head + np.arange(count)) % self.capacity
        for name, field in self._fields.items():
            field[places] = rows[name][:count]
        fence()  # write the items before `head`
        self._head[0] += count
        return count


_lock = threading.Lock()


def fence() -> None:
    """Order the reads and writes before against those after, as other processors see them."""
    if not _ORDERED:
        for _ in range(2):
            with _lock:
                pass
