"""Chunks: which samples of a track are together in the file, found a part of the track at a time.

Memory is that of a part, whatever the track's length, and the chunks do not depend on the parts.
"""

import numpy as np

_CHUNK = 1 << 20  # bytes after which a chunk ends: players read and interleave by chunks


class Chunks:
    """Cuts samples, one after another: by breaks, and where a chunk is large enough."""

    def __init__(self) -> None:
        """Begin before the first sample."""
        self._bytes = 0  # of all samples before
        self._run = 0  # the byte at which the open run begins
        self._step = 0  # how many chunks of this run have ended
        self._open = 0  # samples of the open chunk

    def add(self, sizes: np.ndarray, breaks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the (first samples, sample counts) of chunks that begin and that end here.

        sizes: (samples,) of this part, in bytes; breaks: numbers of its samples that a chunk
        starts with, whatever is before them. The film's first sample must be among them.
        """
        new = np.zeros(len(sizes), bool)
        new[breaks] = True
        ends = self._bytes + np.cumsum(sizes, dtype=np.int64)
        starts = ends - sizes
        latest = np.maximum.accumulate(np.where(new, np.arange(len(new)), -1))
        runs = np.where(latest < 0, self._run, starts[latest])
        # Where a run is longer than a chunk may be, one starts at its first sample past each limit.
        steps = (starts - runs) // _CHUNK
        new = new | (np.diff(steps, prepend=self._step) != 0)
        first = np.flatnonzero(new)
        counts = np.diff(first, prepend=-self._open)
        self._open = len(new) - int(first[-1]) if len(first) else self._open + len(new)
        self._bytes, self._run, self._step = int(ends[-1]), int(runs[-1]), int(steps[-1])
        return first, counts[counts > 0]

    def end(self) -> np.ndarray:
        """Return the sample count of the last chunk, (1,)."""
        return np.array([self._open], np.int64)
