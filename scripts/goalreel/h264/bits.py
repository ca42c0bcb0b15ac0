"""Write and move the bits of H.264 syntax elements, and build NAL units.

`BitWriter` handles one syntax element at a time. `BitStrings` and the functions on arrays handle
many bit strings in one call.
Source: Rec. ITU-T H.264, 7.2 (order of bits), 7.3.1 and 7.4.1 (NAL units, emulation prevention),
7.3.2.11 (RBSP trailing bits), 9.1 (Exp-Golomb codes), Annex B; ISO/IEC 14496-15, 5.3.3 (samples).
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from goalreel.arrays import ranges

# nal_unit_type (Table 7-1)
SLICE, IDR, SPS, PPS = 1, 5, 7, 8
_EMULATION = re.compile(rb"\x00\x00(?=[\x00-\x03])")


class BitStrings(NamedTuple):
    """Bit strings that share one byte array."""

    data: np.ndarray  # (m,) uint8
    starts: np.ndarray  # (n,) int64, index of the first bit of each string
    lengths: np.ndarray  # (n,) int64, in bits

    def unpack(self) -> list[np.ndarray]:
        """Return each string as (length,) uint8, one bit per element."""
        bits, ends = np.unpackbits(self.data), (self.starts + self.lengths).tolist()
        return [bits[a:b] for a, b in zip(self.starts.tolist(), ends, strict=True)]


def join_rows(strings: BitStrings) -> tuple[np.ndarray, np.ndarray]:
    """Concatenate the bit strings of each row and pad each row with zeros to whole bytes.

    strings: `starts` and `lengths` have the shape (rows, k). Returns the bytes of all rows, (m,)
    uint8, and the row offsets into them, (rows + 1,).
    """
    data = np.append(strings.data, np.zeros(2, np.uint8))
    ends = np.cumsum(strings.lengths, axis=1)
    bounds = np.cumsum([0, *-(-ends[:, -1] // 8)])
    packed = np.zeros(bounds[-1], np.uint8)
    columns = zip(strings.starts.T, strings.lengths.T, (ends - strings.lengths).T, strict=True)
    for starts, lengths, positions in columns:
        byte, shift = np.divmod(positions, 8)
        sizes = -(-(shift + lengths) // 8)
        # Each output byte takes eight source bits. Those outside the string are masked below.
        bits = np.repeat(starts - shift, sizes) + 8 * ranges(np.zeros_like(sizes), sizes)
        source, turn = np.divmod(bits, 8)
        window = data[source].astype(np.uint16) << 8 | data[source + 1]
        part = (window >> (8 - turn).astype(np.uint16)).astype(np.uint8)
        present = sizes > 0
        last = np.cumsum(sizes)[present] - 1
        part[last - sizes[present] + 1] &= (0xFF >> shift[present]).astype(np.uint8)
        part[last] &= (0xFF << -(shift + lengths)[present] % 8 & 0xFF).astype(np.uint8)
        packed[ranges(bounds[:-1] + byte, sizes)] |= part
    return packed, bounds


def put_numbers(data: bytearray, positions: np.ndarray, numbers: np.ndarray, width: int) -> None:
    """Write the low `width` bits of each number at its bit position, over bits that are 0."""
    count = (width + 14) // 8  # bytes that one number can touch, and no two share a byte
    byte, bit = np.divmod(positions, 8)
    window = numbers % (1 << width) << (8 * count - width - bit)
    buffer = np.frombuffer(data, np.uint8)
    for n in range(count):
        buffer[byte + n] |= (window >> 8 * (count - 1 - n) & 0xFF).astype(np.uint8)


def ue_codewords(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the values and the lengths in bits of ue(v) codewords (9.1)."""
    values = numbers + 1
    return values, 2 * np.floor(np.log2(values)).astype(np.int64) + 1


class BitWriter:
    """A growing bit string that takes the most significant bit of each value first."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # ASCII digits; bit 0 of each character is the bit

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def u(self, width: int, value: int) -> "BitWriter":
        """Append `value` in `width` bits."""
        self._parts.append(format(value, f"0{width}b").encode())
        return self

    def ue(self, value: int) -> "BitWriter":
        """Append an unsigned Exp-Golomb code."""
        digits = format(value + 1, "b")
        self._parts.append(digits.rjust(2 * len(digits) - 1, "0").encode())
        return self

    def se(self, value: int) -> "BitWriter":
        """Append a signed Exp-Golomb code."""
        return self.ue(2 * value - 1 if value > 0 else -2 * value)

    def to_array(self) -> np.ndarray:
        """Return all bits, (n,) uint8, one bit per element."""
        return np.frombuffer(b"".join(self._parts), np.uint8) & 1


def to_rbsp(bits: np.ndarray) -> bytes:
    """Return the RBSP of (n,) bits: append rbsp_trailing_bits and pack the bits into bytes."""
    return np.packbits(np.append(np.asarray(bits, np.uint8), np.uint8(1))).tobytes()


def escape(rbsp: bytes) -> bytes:
    """Return `rbsp` with emulation prevention bytes, as a NAL unit holds it."""
    return _EMULATION.sub(b"\x00\x00\x03", rbsp)


def pack(ref_idc: int, type: int, rbsp: bytes) -> bytes:  # noqa: A002 (the standard's name)
    """Return a NAL unit: its header byte (nal_ref_idc, nal_unit_type) and the escaped RBSP."""
    return bytes([ref_idc << 5 | type]) + escape(rbsp)


def annex_b(units: Iterable[bytes]) -> bytes:
    """Return a byte stream of NAL units, each after a start code of 4 bytes."""
    return b"".join(b"\x00\x00\x00\x01" + unit for unit in units)


def length_prefixed(unit: bytes, length_bytes: int = 4) -> bytes:
    """Return a NAL unit after its length, as MP4 samples hold it."""
    return len(unit).to_bytes(length_bytes, "big") + unit
