"""Assembly: from coded slices to the samples of a film, in any order, by joining and patching.

A sample is a row of parts, each a NAL unit after its length. What differs from place to place is
pic_order_cnt_lsb alone, so all samples of a shard are joined first and patched in one vectorised
write. Source: Rec. ITU-T H.264, 7.3.3 and 8.2.1.1. What the parts show is told in coded_atlas and
in segment.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.h264.nal import length_prefixed, unpack
from goalreel.h264.slices import SliceHeader, header_bits, poc_position, slice_nal

NO_ORDER = -1
_ORDER = 0xFFFF  # pic_order_cnt_lsb with all its bits
_LENGTH = 4  # bytes of a NAL unit's length
_BATCH = 1 << 14  # samples that are joined at a time


@dataclass(frozen=True)
class Parts:
    """What samples are joined from; part 0 is empty.

    parts: (n,) bytes objects; sizes: (n,) int64 bytes; orders: (n,) int64, the bit at which
    pic_order_cnt_lsb begins, its bits 0, or NO_ORDER
    """

    parts: np.ndarray
    sizes: np.ndarray
    orders: np.ndarray


@dataclass(frozen=True)
class Samples:
    """The samples of a segment, still in parts.

    rows: (frames, slots) numbers of parts; counts: (frames,) pictures since the IDR picture
    """

    parts: Parts
    rows: np.ndarray
    counts: np.ndarray


class Store:
    """Parts in the making; every method that adds one returns its number."""

    def __init__(self) -> None:
        """Begin with the empty part."""
        self._parts = [b""]
        self._headers: list[SliceHeader | None] = [None]

    def add(self, header: SliceHeader, data: np.ndarray) -> int:
        """Add a P slice, given its data as bits. Raises GoalreelError as ordered."""
        return self.add_made(header, ordered(header, data))

    def add_made(self, header: SliceHeader, part: bytes) -> int:
        """Add a P slice as `ordered` returned it."""
        self._parts.append(part)
        self._headers.append(header)
        return len(self._parts) - 1

    def add_whole(self, part: bytes) -> int:
        """Add a part without an order: NAL units after their lengths."""
        self._parts.append(part)
        self._headers.append(None)
        return len(self._parts) - 1

    def slice(self, number: int) -> tuple[SliceHeader, np.ndarray]:
        """Return the header and the data of a P slice."""
        header, unit = self._headers[number], unpack(self._parts[number][_LENGTH:])
        bits = np.unpackbits(np.frombuffer(unit.rbsp, np.uint8))
        return header, bits[len(header_bits(header)) : np.flatnonzero(bits)[-1]]

    def collected(self) -> Parts:
        """Return the parts."""
        parts = np.empty(len(self._parts), object)
        parts[:] = self._parts
        # By identity: thousands of slices share a header, whose hash is costly.
        headers = {id(header): header for header in self._headers}
        orders = {key: _place(header) if header else NO_ORDER for key, header in headers.items()}
        return Parts(
            parts,
            np.array([len(part) for part in self._parts], np.int64),
            np.array([orders[id(header)] for header in self._headers], np.int64),
        )


def ordered(header: SliceHeader, data: np.ndarray) -> bytes:
    """Return a slice as a part whose order's bits are 0.

    Raises GoalreelError if an order could make its bytes look like a start code (7.4.1).
    """
    # All ones, so that no emulation prevention byte comes into the order's bytes.
    part = bytearray(length_prefixed([slice_nal(replace(header, poc_lsb=_ORDER), data)]))
    byte, bit = divmod(_place(header), 8)
    window = int.from_bytes(part[byte : byte + 3], "big") & ~(_ORDER << (8 - bit))
    part[byte : byte + 3] = window.to_bytes(3, "big")
    # The first of the three bytes is not 0. So whatever the order is, at most the others are, and
    # no byte below 4 follows them.
    if not (bit and part[byte] and (part[byte + 2] or part[byte + 3] > 3)):
        raise GoalreelError(f"a slice that no order fits into: {header}")
    return bytes(part)


def _place(header: SliceHeader) -> int:
    """Return the bit of a part at which its order begins."""
    return 8 * (_LENGTH + 1) + poc_position(header)


def sample_sizes(samples: Samples) -> np.ndarray:
    """Return the bytes of each sample, (frames,) int64."""
    return samples.parts.sizes[samples.rows].sum(axis=1)


def assemble(samples: Samples) -> Iterator[bytearray]:
    """Yield all samples, joined, a batch at a time."""
    for start in range(0, len(samples.rows), _BATCH):
        batch = slice(start, start + _BATCH)
        yield _joined(samples.parts, samples.rows[batch], samples.counts[batch])


def _joined(parts: Parts, rows: np.ndarray, counts: np.ndarray) -> bytearray:
    numbers = rows.ravel()
    joined = bytearray().join(parts.parts[numbers].tolist())
    ordered = np.flatnonzero(parts.orders[numbers] != NO_ORDER)
    places = parts.orders[numbers[ordered]]
    starts = (np.cumsum(parts.sizes[numbers]) - parts.sizes[numbers])[ordered]
    byte, bit = starts + places // 8, places % 8
    window = (2 * counts[ordered // rows.shape[1]] & _ORDER) << (8 - bit)
    buffer = np.frombuffer(joined, np.uint8)
    for shift in (16, 8, 0):
        buffer[byte] |= ((window >> shift) & 0xFF).astype(np.uint8)
        byte = byte + 1
    return joined
