"""Assemble the samples of a film from coded slices, in any order.

A part is one or more NAL units after their lengths, and a sample is a row of parts. Only
pic_order_cnt_lsb depends on the position in the film, so samples are joined first and patched in
one vectorized write.
Source: Rec. ITU-T H.264, 7.3.3 and 8.2.1.1.
"""

from dataclasses import replace
from typing import IO

import numpy as np

from goalreel.h264.bits import length_prefixed, put_numbers
from goalreel.h264.parameter_sets import POC_BITS
from goalreel.h264.slices import SliceHeader, header_bits, slice_nal

# The limit of an assembled episode. Order counts rise by 2 from the IDR picture, and must stay
# below half the range of pic_order_cnt_lsb (8.2.1.1).
MOST_PICTURES = 1 << (POC_BITS - 2)
NO_ORDER = -1
_ORDER = (1 << POC_BITS) - 1  # pic_order_cnt_lsb with all bits set
_LENGTH = 4  # bytes of the length before a NAL unit
_BATCH = 1 << 14  # samples joined per step


class PartStore:
    """A numbered collection of parts. Part 0 is empty."""

    def __init__(self) -> None:
        self._parts = [b""]
        self._orders = [NO_ORDER]

    def add(self, part: bytes, order: int = NO_ORDER) -> int:
        """Add a part with pic_order_cnt_lsb at the bit `order`, and return its number."""
        self._parts.append(part)
        self._orders.append(order)
        return len(self._parts) - 1

    def add_slice(self, header: SliceHeader, data: np.ndarray) -> int:
        """Add a P slice, given its data as one bit per element, and return its number."""
        return self.add(to_part(header, data), order_position(header))

    def write(self, stream: IO[bytes], rows: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Write samples and return their sizes in bytes, (frames,) int64.

        rows: (frames, slots) part numbers; counts: (frames,) pictures since the IDR picture.
        """
        part_sizes, orders = np.array([*map(len, self._parts)], np.int64), np.array(self._orders)
        for start in range(0, len(rows), _BATCH):
            numbers = rows[start : start + _BATCH].ravel()
            samples = bytearray().join(map(self._parts.__getitem__, numbers.tolist()))
            slices = np.flatnonzero(orders[numbers] != NO_ORDER)
            sizes = part_sizes[numbers]
            places = 8 * (np.cumsum(sizes) - sizes)[slices] + orders[numbers[slices]]
            put_numbers(samples, places, 2 * counts[start + slices // rows.shape[1]], POC_BITS)
            stream.write(samples)
        return part_sizes[rows].sum(axis=1)


def to_part(header: SliceHeader, data: np.ndarray) -> bytes:
    """Return a slice as a part whose pic_order_cnt_lsb is 0."""
    # All bits set, so that no emulation prevention byte falls into pic_order_cnt_lsb.
    part = bytearray(length_prefixed(slice_nal(replace(header, poc_lsb=_ORDER), data)))
    byte, bit = divmod(order_position(header), 8)
    window = int.from_bytes(part[byte : byte + 3], "big") & ~(_ORDER << (8 - bit))
    part[byte : byte + 3] = window.to_bytes(3, "big")
    # The first of the three bytes is not 0. At most the other two are, and no byte below 4 follows
    # them. No value of pic_order_cnt_lsb can therefore form a start code (7.4.1).
    assert bit and part[byte] and (part[byte + 2] or part[byte + 3] > 3), header
    return bytes(part)


def order_position(header: SliceHeader) -> int:
    """Return the bit position of pic_order_cnt_lsb in a part."""
    return 8 * (_LENGTH + 1) + header_bits(header).order
