"""A track's sample tables, written: which samples make a chunk, and the boxes that say so.

All of it is arrays: a film may have ten million samples. Reading these tables is mp4_samples'.

Source of the boxes: ISO/IEC 14496-12, 8.6.1 (stts, stss), 8.7.3 to 8.7.5 (stsz, stsc, stco, co64).
"""

import numpy as np

from goalreel.mp4_boxes import Box, full_box

_CHUNK = 1 << 20  # bytes after which a chunk ends: players read and interleave by chunks
# A chunk costs 4 or 8 bytes, a change of their lengths 12: short runs are cheaper as chunks of 1.
_SHORTEST_RUN = 8


def chunks(
    starts: np.ndarray, offsets: np.ndarray | None, breaks: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return each chunk's first sample and its number of samples.

    starts: (samples + 1,) int64, the bytes of all samples before each, and of all; offsets:
    (samples,) int64, where the samples stand, None if one after another; breaks: numbers of
    samples that a chunk starts with whatever stands before them.
    """
    samples = len(starts) - 1
    new = np.zeros(samples + 1, bool)  # and one behind the last
    new[0] = True
    new[breaks] = True
    if offsets is not None:
        new[1:-1] |= np.diff(offsets) != np.diff(starts[:-1])
        new[:-1] |= _short(new[:-1])
    runs = np.flatnonzero(new[:-1])
    # Where a run is longer than a chunk may be, one starts at its first sample past each limit.
    limits = -(-np.diff(starts[np.append(runs, samples)]) // _CHUNK)
    step = np.arange(limits.sum()) - np.repeat(np.cumsum(limits) - limits, limits)
    new[np.searchsorted(starts[:-1], np.repeat(starts[runs], limits) + step * _CHUNK)] = True
    first = np.flatnonzero(new[:-1])
    return first, np.diff(first, append=samples)


def _short(new: np.ndarray) -> np.ndarray:
    """Return which samples are in runs that are too short to make a chunk."""
    lengths = np.diff(np.flatnonzero(new), append=len(new))
    return np.repeat(lengths < _SHORTEST_RUN, lengths)


def table(name: str, entries: np.ndarray, kind: str = ">u4") -> Box:
    """Return a full box of a count and as many entries: one number or a row of them each."""
    return full_box(name, len(entries).to_bytes(4, "big"), _bytes(entries, kind))


def sample_sizes(sizes: np.ndarray) -> Box:
    """Return stsz."""
    count = len(sizes).to_bytes(4, "big")
    if (sizes == sizes[0]).all():
        return full_box("stsz", int(sizes[0]).to_bytes(4, "big"), count)
    return full_box("stsz", bytes(4), count, _bytes(sizes, ">u4"))


def chunk_places(counts: np.ndarray, places: np.ndarray, wide: bool) -> list[Box]:
    """Return stsc and stco or, if wide, co64: each chunk's samples and first byte in the file."""
    new = np.flatnonzero(np.diff(counts, prepend=0))
    samples = np.stack([new + 1, counts[new], np.ones_like(new)], axis=1)
    stored = table("co64", places, ">u8") if wide else table("stco", places)
    return [table("stsc", samples), stored]


def _bytes(entries: np.ndarray, kind: str) -> memoryview:
    return memoryview(np.ascontiguousarray(entries, kind).reshape(-1).view(np.uint8))
