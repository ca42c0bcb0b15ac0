"""Chunks: which samples of a track stand together in the file, told a part of the track at a time.

Memory is that of a part, whatever the track's length, and the chunks do not depend on the parts.
The boxes that tell of chunks stand in mp4_tables.
"""

from collections.abc import Iterator

import numpy as np

_CHUNK = 1 << 20  # bytes after which a chunk ends: players read and interleave by chunks
# A chunk costs 4 or 8 bytes, a change of their lengths 12: short runs are cheaper as chunks of 1.
_SHORTEST_RUN = 8

Found = tuple[np.ndarray, np.ndarray]


class Chunks:
    """Cuts samples that stand one after another: by breaks, and where a chunk is large enough."""

    def __init__(self) -> None:
        """Begin before the first sample."""
        self._bytes = 0  # of all samples before
        self._run = 0  # the byte at which the open run begins
        self._step = 0  # how many chunks of this run have ended
        self._open = 0  # samples of the open chunk

    def add(self, sizes: np.ndarray, breaks: np.ndarray) -> Found:
        """Return the (first samples, sample counts) of chunks that begin and that end here.

        sizes: (samples,) of this part, in bytes; breaks: numbers of its samples that a chunk
        starts with whatever stands before them. The film's first sample must be among them.
        """
        new = np.zeros(len(sizes), bool)
        new[breaks] = True
        return self.cut(sizes, new)

    def cut(self, sizes: np.ndarray, new: np.ndarray) -> Found:
        """Return as `add`; new: (samples,) bool, where a run begins."""
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

    def end(self) -> Iterator[Found]:
        """Yield what is left to tell of: as `add`."""
        yield np.zeros(0, np.int64), np.array([self._open], np.int64)


class SharedChunks:
    """Cuts samples that stand anywhere, several at one place if they are alike."""

    def __init__(self) -> None:
        """Begin before the first sample."""
        self._chunks = Chunks()
        self._end = -1  # the place behind the sample before
        none = np.zeros(0, np.int64)
        self._held = (none, none)  # samples of a run that may be too short to make a chunk

    def add(self, sizes: np.ndarray, offsets: np.ndarray, last: bool = False) -> Found:
        """Return the (places, sample counts) of chunks that begin and that end here.

        sizes, offsets: (samples,) of this part; last: whether the track ends with it. Some chunks
        are told with the next part only.
        """
        held, sizes = len(self._held[0]), np.concatenate([self._held[0], sizes]).astype(np.int64)
        offsets = np.concatenate([self._held[1], offsets])
        if not len(sizes):
            return offsets, offsets
        new = np.append(True, offsets[1:] != (offsets + sizes)[:-1])
        new[0] = held > 0 or int(offsets[0]) != self._end
        runs = np.flatnonzero(new)
        keep = len(new)
        if not last and len(runs) and keep - runs[-1] < _SHORTEST_RUN:
            keep = int(runs[-1])
        self._held = sizes[keep:], offsets[keep:]
        if not keep:
            return offsets[:0], offsets[:0]
        sizes, offsets, new = sizes[:keep], offsets[:keep], new[:keep]
        self._end = int(offsets[-1] + sizes[-1])
        runs = np.flatnonzero(new)
        lengths = np.diff(runs, append=keep)
        # What stands before the first run goes on with one that is long enough already.
        before = int(runs[0]) if len(runs) else keep
        short = np.repeat(lengths < _SHORTEST_RUN, lengths)
        first, counts = self._chunks.cut(sizes, new | np.append(np.zeros(before, bool), short))
        return offsets[first], counts

    def end(self) -> Iterator[Found]:
        """Yield what is left to tell of: as `add`."""
        none = np.zeros(0, np.int64)
        yield self.add(none, none, last=True)
        yield from self._chunks.end()
