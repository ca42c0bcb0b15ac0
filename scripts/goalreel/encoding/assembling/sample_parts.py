"""From coded slices to the samples of a film, in any order, by joining and patching.

A sample is a row of parts, each of NAL units after their lengths. What differs from place to place
is pic_order_cnt_lsb alone, so samples are joined first and patched in one vectorised write.
Source: Rec. ITU-T H.264, 7.3.3 and 8.2.1.1.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from goalreel.h264.bits import put_numbers
from goalreel.h264.nal import length_prefixed
from goalreel.h264.parameter_sets import POC_BITS
from goalreel.h264.slices import SliceHeader, header_bits, slice_nal

# Of an episode: its pictures' orders, each 2 more than the last, count from its IDR picture, and
# must stay below half of what pic_order_cnt_lsb can hold (8.2.1.1).
MOST_PICTURES = 1 << (POC_BITS - 2)
NO_ORDER = -1
_ORDER = (1 << POC_BITS) - 1  # pic_order_cnt_lsb with all its bits
_LENGTH = 4  # bytes of a NAL unit's length
_BATCH = 1 << 14  # samples that are joined at a time


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
        """Add a P slice and return its number; data: its bits."""
        return self.add(ordered(header, data), order_position(header))

    def samples(
        self, rows: np.ndarray, counts: np.ndarray
    ) -> tuple[np.ndarray, Iterator[bytearray]]:
        """Return the bytes of each sample, (frames,) int64, and all samples, a batch at a time.

        rows: (frames, slots) numbers of parts; counts: (frames,) pictures since the IDR picture.
        """
        sizes = np.array([*map(len, self._parts)], np.int64)
        return sizes[rows].sum(axis=1), self._joined(rows, counts, sizes)

    def _joined(
        self, rows: np.ndarray, counts: np.ndarray, part_sizes: np.ndarray
    ) -> Iterator[bytearray]:
        orders = np.array(self._orders)
        for start in range(0, len(rows), _BATCH):
            numbers = rows[start : start + _BATCH].ravel()
            samples = bytearray().join(map(self._parts.__getitem__, numbers.tolist()))
            slices = np.flatnonzero(orders[numbers] != NO_ORDER)
            sizes = part_sizes[numbers]
            places = 8 * (np.cumsum(sizes) - sizes)[slices] + orders[numbers[slices]]
            put_numbers(samples, places, 2 * counts[start + slices // rows.shape[1]], POC_BITS)
            yield samples


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
    return 8 * (_LENGTH + 1) + header_bits(header).order
