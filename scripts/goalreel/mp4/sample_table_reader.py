"""A track's sample tables, read: how long samples last, which are keyframes, where each one is.

All of it is arrays: a film may have ten million samples.

Source of the boxes: ISO/IEC 14496-12, 8.6.1 (stts, ctts, stss), 8.7.3 to 8.7.5 (stsz, stsc, stco,
co64).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from goalreel.mp4.box_reader import Span


@dataclass(frozen=True, eq=False)
class Samples:
    """Where the samples of a track are in the file; those of a chunk, one after another."""

    sizes: np.ndarray  # (samples,) uint32, bytes of each
    chunk_places: np.ndarray  # (chunks,) int64, the file's byte that each chunk starts at
    chunk_samples: np.ndarray  # (chunks,) int64, the number of samples in each

    @cached_property
    def chunk_bytes(self) -> np.ndarray:
        """The number of bytes of each chunk, (chunks,) int64."""
        return np.add.reduceat(self.sizes, self._first, dtype=np.int64)

    @property
    def offsets(self) -> np.ndarray:
        """The file's byte that each sample starts at, (samples,) int64."""
        ends = np.cumsum(self.sizes, dtype=np.int64)
        ends -= self.sizes
        ends += np.repeat(self.chunk_places - ends[self._first], self.chunk_samples)
        return ends

    def runs(self) -> list[tuple[int, int]]:
        """Return the (start, length) of all stretches of the file that hold the samples in turn."""
        ends = self.chunk_places + self.chunk_bytes
        new = np.flatnonzero(np.append(True, self.chunk_places[1:] != ends[:-1]))
        starts, lasts = self.chunk_places[new], ends[np.append(new[1:], len(ends)) - 1]
        return list(zip(starts.tolist(), (lasts - starts).tolist(), strict=True))

    @property
    def _first(self) -> np.ndarray:
        return np.cumsum(self.chunk_samples) - self.chunk_samples


def read_samples(table: Mapping[bytes, "Span"]) -> Samples:
    """Read stsz, stsc and stco or co64 of an stbl box. Raises ValueError, LookupError."""
    sizes = _sizes(table[b"stsz"])
    if b"co64" in table:
        places = _entries(table[b"co64"], ">i8")[:, 0].astype(np.int64)
    else:
        places = _entries(table[b"stco"], ">u4")[:, 0].astype(np.int64)
    first, samples, _ = _entries(table[b"stsc"], ">u4", 3).T.astype(np.int64)
    if not len(first) or not len(places) or first[0] != 1 or first[-1] > len(places):
        raise ValueError("a table of chunks that fits no chunk")
    lengths = np.diff(first, append=len(places) + 1)
    if lengths.min() < 1 or samples.min() < 1 or (samples * lengths).sum() != len(sizes):
        raise ValueError(f"chunks that do not hold {len(sizes)} samples")
    if sizes.min() < 1:
        raise ValueError("a sample of no bytes")
    return Samples(sizes, places, np.repeat(samples, lengths))


def read_durations(table: Mapping[bytes, "Span"]) -> tuple[int, tuple[int, ...]]:
    """Return the number of samples in stts, and their distinct durations."""
    counts, durations = _entries(table[b"stts"], ">u4", 2).T
    return int(counts.sum(dtype=np.int64)), tuple(_distinct(durations).tolist())


def read_composition(table: Mapping[bytes, "Span"]) -> tuple[int, int]:
    """Return how many offsets from decoding to composition time there are, and the first."""
    if b"ctts" not in table:
        return 1, 0
    offsets = _entries(table[b"ctts"], ">i4", 2)[:, 1]
    return len(_distinct(offsets)), int(offsets[0])


def read_keyframes(table: Mapping[bytes, "Span"], frames: int) -> Sequence[int]:
    """Return the numbers of the sync samples from 0: all where there is no stss."""
    if b"stss" not in table:
        return range(frames)
    numbers = _entries(table[b"stss"], ">u4")[:, 0].astype(np.int64)
    if numbers[0] != 1 or (np.diff(numbers, append=frames + 1) < 1).any():
        raise ValueError("a table of keyframes that does not ascend through the samples")
    return tuple((numbers - 1).tolist())


def _distinct(values: np.ndarray) -> np.ndarray:
    """Return the distinct values in order, as np.unique, which imports half of NumPy first."""
    ordered = np.sort(values)
    return ordered[np.append(True, np.diff(ordered) != 0)[: len(ordered)]]


def _entries(box: "Span", kind: str, columns: int = 1) -> np.ndarray:
    """Return the entries of a full box, (entries, columns): after version, flags and a count."""
    content = box.read()
    count = int.from_bytes(content[4:8], "big")
    if len(content) < 8 or 8 + count * columns * np.dtype(kind).itemsize > len(content):
        raise ValueError("a table of samples is cut short")
    return np.frombuffer(content, kind, count * columns, 8).reshape(count, columns)


def _sizes(box: "Span") -> np.ndarray:
    same = int.from_bytes(box.read(4, 4), "big")
    if same:  # no memory is taken
        return np.broadcast_to(np.uint32(same), int.from_bytes(box.read(8, 4), "big"))
    return _entries(box.part(4, len(box) - 4), ">u4")[:, 0].astype(np.uint32)
