"""A ring of items in shared memory: one process writes, one reads, and neither takes a lock.

The writer alone changes `head`, the number of items ever written, and the reader alone `tail`, the
number ever taken; each reads the other's. An item is written into its place, a view of the shared
arrays, before `head` passes it, and is not overwritten before `tail` has passed it.

That is right where other processors see a processor's writes in the order that it made them, and
where an aligned 64-bit number is read and written whole, as processors of 64 bits do. x86-64 keeps
that order (Intel SDM, volume 3A, 8.2.2: writes are not reordered with other writes, reads not with
other reads), as long as memcpy ends its non-temporal writes with a fence, as glibc's does. Other
processors, Arm's for one, do not: there `fence` takes and releases a lock of the process's own,
twice, that nobody contends for (Arm ARM, B2.3: a release is ordered before the acquire that follows
it). A test moves millions of items with a checksum each between two processes.
"""

import platform
import threading
from collections.abc import Mapping

import numpy as np

from goalreel.training.shared_memory.arrays import Fields, shared_arrays

_ORDERED = platform.machine() in ("x86_64", "AMD64")  # total store order


class Ring:
    """A ring of `capacity` items, each a row of every field.

    Attributes:
        fd: the descriptor of its memory, for the other process.
        capacity: items.
    """

    def __init__(self, fields: Fields, capacity: int, fd: int | None = None):
        """Make a ring, or join the one of a descriptor.

        Raises ValueError for a descriptor of less memory than the ring's.
        """
        rows = {name: (dtype, (capacity, *shape)) for name, (dtype, shape) in fields.items()}
        counters = {"head": ("<i8", (1,)), "tail": ("<i8", (1,))}
        self.capacity = capacity
        self.fd, self._fields = shared_arrays(counters | rows, fd)
        self._head, self._tail = self._fields.pop("head"), self._fields.pop("tail")

    def __len__(self) -> int:
        """Return the number of items that are written and not taken."""
        return int(self._head[0]) - int(self._tail[0])

    def space(self, most: int) -> dict[str, np.ndarray]:
        """Return places for up to `most` items, in one piece, for the writer to fill.

        There may be fewer than are free, at the arrays' end, and none if the ring is full. They
        become items by `commit`.
        """
        head = int(self._head[0])
        free = self.capacity - (head - int(self._tail[0]))
        fence()  # what is written there now comes after what the reader took
        return self._piece(head, min(most, free))

    def commit(self, count: int) -> None:
        """Hand the first `count` places of the last `space` to the reader."""
        fence()  # the items come before the number that counts them
        self._head[0] += count

    def items(self, most: int) -> dict[str, np.ndarray]:
        """Return up to `most` items, in one piece; they stay until `release`.

        There may be fewer than are written, at the arrays' end.
        """
        tail = int(self._tail[0])
        written = int(self._head[0]) - tail
        fence()  # the items are read after the number that counts them
        return self._piece(tail, min(most, written))

    def release(self, count: int) -> None:
        """Give the first `count` items of the last `items` back to the writer."""
        fence()  # they are read before the number that gives them back
        self._tail[0] += count

    def push(self, rows: Mapping[str, np.ndarray]) -> int:
        """Write the first rows, as many as fit; return how many that were."""
        total, done = len(next(iter(rows.values()))), 0
        while done < total:
            places = self.space(total - done)
            count = len(next(iter(places.values())))
            if not count:
                break
            for name, place in places.items():
                place[:] = rows[name][done : done + count]
            self.commit(count)
            done += count
        return done

    def _piece(self, first: int, most: int) -> dict[str, np.ndarray]:
        start = first % self.capacity
        end = min(start + most, self.capacity)
        return {name: field[start:end] for name, field in self._fields.items()}


_lock = threading.Lock()


def fence() -> None:
    """Keep what is read and written before apart from what comes after, for other processors."""
    if not _ORDERED:
        for _ in range(2):
            with _lock:
                pass
