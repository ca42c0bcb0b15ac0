"""From coded slices to the samples of a film, in any order, by joining and patching.

A sample is a row of parts, each of NAL units after their lengths. What differs from place to place
is pic_order_cnt_lsb alone, so samples are joined first and patched in one vectorised write.
Source: Rec. ITU-T H.264, 7.3.3 and 8.2.1.1.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from goalreel.h264.nal import length_prefixed
from goalreel.h264.parameter_sets import POC_BITS
from goalreel.h264.slices import SliceHeader, poc_position, slice_nal

# Of an episode: its pictures' orders, each 2 more than the last, count from its IDR picture, and
# must stay below half of what pic_order_cnt_lsb can hold (8.2.1.1).
MOST_PICTURES = 1 << (POC_BITS - 2)
NO_ORDER = -1
_ORDER = (1 << POC_BITS) - 1  # pic_order_cnt_lsb with all its bits
_LENGTH = 4  # bytes of a NAL unit's length
_BATCH = 1 << 14  # samples that are joined at a time


@dataclass(frozen=True)
class Samples:
    """The samples of a segment, still in parts; part 0 is empty."""

    parts: np.ndarray  # (parts,) bytes objects
    part_sizes: np.ndarray  # (parts,) int64, bytes
    orders: np.ndarray  # (parts,) int64, the bit where pic_order_cnt_lsb begins, or NO_ORDER
    rows: np.ndarray  # (frames, slots) int64, numbers of parts
    counts: np.ndarray  # (frames,) int64, pictures since the IDR picture

    @property
    def sizes(self) -> np.ndarray:
        """The bytes of each sample, (frames,) int64."""
        return self.part_sizes[self.rows].sum(axis=1)

    def joined(self) -> Iterator[bytearray]:
        """Yield all samples, joined, a batch at a time."""
        for start in range(0, len(self.rows), _BATCH):
            rows, counts = (each[start : start + _BATCH] for each in (self.rows, self.counts))
            numbers = rows.ravel()
            joined = bytearray().join(self.parts[numbers].tolist())
            slices = np.flatnonzero(self.orders[numbers] != NO_ORDER)
            places = self.orders[numbers[slices]]
            sizes = self.part_sizes[numbers]
            byte, bit = (np.cumsum(sizes) - sizes)[slices] + places // 8, places % 8
            window = (2 * counts[slices // rows.shape[1]] & _ORDER) << (8 - bit)
            buffer = np.frombuffer(joined, np.uint8)
            for shift in (16, 8, 0):
                buffer[byte] |= ((window >> shift) & 0xFF).astype(np.uint8)
                byte = byte + 1
            yield joined


class PartStore:
    """Collects parts; part 0 is empty."""

    def __init__(self) -> None:
        """Begin with the empty part."""
        self._parts = [b""]
        self._orders = [NO_ORDER]

    def add(self, part: bytes, order: int = NO_ORDER) -> int:
        """Add a part and return its number; order: the bit where pic_order_cnt_lsb begins."""
        self._parts.append(part)
        self._orders.append(order)
        return len(self._parts) - 1

    def add_slice(self, header: SliceHeader, data: np.ndarray) -> int:
        """Add a P slice, given its data as bits."""
        return self.add(ordered(header, data), order_position(header))

    def samples(self, rows: np.ndarray, counts: np.ndarray) -> Samples:
        """Return the samples that rows of parts make up; see Samples."""
        parts = np.empty(len(self._parts), object)
        parts[:] = self._parts
        sizes = np.array([len(part) for part in self._parts], np.int64)
        return Samples(parts, sizes, np.array(self._orders, np.int64), rows, counts)


def ordered(header: SliceHeader, data: np.ndarray) -> bytes:
    """Return a slice as a part whose pic_order_cnt_lsb is 0."""
    # All ones, so that no emulation prevention byte comes into the order's bytes.
    part = bytearray(length_prefixed(slice_nal(replace(header, poc_lsb=_ORDER), data)))
    byte, bit = divmod(order_position(header), 8)
    window = int.from_bytes(part[byte : byte + 3], "big") & ~(_ORDER << (8 - bit))
    part[byte : byte + 3] = window.to_bytes(3, "big")
    # The first of the three bytes is not 0. So whatever the order is, at most the others are, and
    # no byte below 4 follows them: no order makes the bytes look like a start code (7.4.1).
    assert bit and part[byte] and (part[byte + 2] or part[byte + 3] > 3), header
    return bytes(part)


def order_position(header: SliceHeader) -> int:
    """Return the bit of a part at which pic_order_cnt_lsb begins."""
    return 8 * (_LENGTH + 1) + poc_position(header)
