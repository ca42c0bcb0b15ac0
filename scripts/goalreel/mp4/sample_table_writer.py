"""A track's sample tables, written: the boxes of chunks and samples.

They are gathered a part of the track at a time: a film may have a hundred million samples.

Source of the boxes: ISO/IEC 14496-12, 8.6.1 (stts, stss), 8.7.3 to 8.7.5 (stsz, stsc, stco, co64).
"""

from pathlib import Path

import numpy as np

from goalreel.mp4.box_writer import Box, full_box
from goalreel.mp4.columns import Column, Entries


class SampleSizes:
    """stsz: the bytes of each sample."""

    def __init__(self, folder: Path) -> None:
        """Begin without samples; `folder` is for the columns."""
        self._sizes, self._same, self._first = Column(folder, ">u4"), True, 0

    def append(self, sizes: np.ndarray) -> None:
        """Add samples."""
        self._first = self._first or int(sizes[0])
        self._same = self._same and bool((sizes == self._first).all())
        self._sizes.append(sizes)

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self._sizes)

    def box(self, more: int = 0) -> Box:
        """Return the box of samples that are all `more` bytes larger."""
        count = len(self._sizes).to_bytes(4, "big")
        if self._same:
            return full_box("stsz", (self._first + more).to_bytes(4, "big"), count)
        return full_box("stsz", bytes(4), count, Entries(self._sizes, ">u4", more))


class SamplesOfChunks:
    """stsc: the number of samples in each chunk, stored where it changes."""

    def __init__(self, folder: Path) -> None:
        """Begin without chunks."""
        self._rows, self._chunks, self._before = Column(folder, ">u4", 3), 0, 0

    def append(self, counts: np.ndarray) -> None:
        """Add chunks of so many samples."""
        new = np.flatnonzero(np.diff(counts, prepend=self._before))
        numbers = self._chunks + new + 1
        self._rows.append(np.stack([numbers, counts[new], np.ones_like(new)], axis=1))
        self._chunks += len(counts)
        self._before = int(counts[-1]) if len(counts) else self._before

    def box(self) -> Box:
        """Return the box."""
        return table("stsc", self._rows)


def table(name: str, entries: Column | np.ndarray, kind: str = ">u4", more: int = 0) -> Box:
    """Return a full box of a count and as many entries: one number or a row of them each.

    more: what is added to each number of a column.
    """
    if isinstance(entries, Column):
        return full_box(name, len(entries).to_bytes(4, "big"), Entries(entries, kind, more))
    stored = np.ascontiguousarray(entries, kind).tobytes()
    return full_box(name, len(entries).to_bytes(4, "big"), stored)


def chunk_places(places: Column | np.ndarray, base: int, wide: bool) -> Box:
    """Return stco or, if wide, co64: each chunk's first byte in the file, `base` added."""
    if not isinstance(places, Column):
        places, base = places + base, 0
    return table("co64", places, ">u8", base) if wide else table("stco", places, ">u4", base)
