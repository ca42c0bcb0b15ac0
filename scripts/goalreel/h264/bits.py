"""Bits as a NAL unit holds them: fixed widths, Exp-Golomb codes, trailing bits, escapes.

Source: ITU-T H.264, 7.2 (reading), 7.3.1 and 7.4.1 (emulation prevention), 7.3.2.11 (trailing
bits), 9.1 (Exp-Golomb).
"""

import re
from typing import NamedTuple

import numpy as np

from goalreel.arrays import ranges

_EMULATION = re.compile(rb"\x00\x00(?=[\x00-\x03])")


class BitStrings(NamedTuple):
    """Strings of bits, each somewhere in the same bytes."""

    data: np.ndarray  # (m,) uint8
    starts: np.ndarray  # (n,) int64, the number of each one's first bit
    lengths: np.ndarray  # (n,) int64

    def unpacked(self) -> list[np.ndarray]:
        """Return the bits of each, (n,) uint8 of 0 and 1."""
        bits, ends = np.unpackbits(self.data), (self.starts + self.lengths).tolist()
        return [bits[a:b] for a, b in zip(self.starts.tolist(), ends, strict=True)]


def joined(strings: BitStrings) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of strings, the strings of each joined and filled up with 0 to whole bytes.

    strings: starts and lengths (rows, k). Returns the bytes, (m,) uint8, end to end, and
    (rows + 1,) where each row begins and the last one ends.
    """
    data = np.append(strings.data, np.zeros(2, np.uint8))
    ends = np.cumsum(strings.lengths, axis=1)
    bounds = np.cumsum([0, *-(-ends[:, -1] // 8)])
    made = np.zeros(bounds[-1], np.uint8)
    columns = zip(strings.starts.T, strings.lengths.T, (ends - strings.lengths).T, strict=True)
    for starts, lengths, places in columns:
        byte, shift = np.divmod(places, 8)
        sizes = -(-(shift + lengths) // 8)
        # Each byte made is eight bits from somewhere on, less what is before or behind the string.
        bits = np.repeat(starts - shift, sizes) + 8 * ranges(np.zeros_like(sizes), sizes)
        source, turn = np.divmod(bits, 8)
        window = data[source].astype(np.uint16) << 8 | data[source + 1]
        part = (window >> (8 - turn).astype(np.uint16)).astype(np.uint8)
        some = sizes > 0
        last = np.cumsum(sizes)[some] - 1
        part[last - sizes[some] + 1] &= (0xFF >> shift[some]).astype(np.uint8)
        part[last] &= (0xFF << -(shift + lengths)[some] % 8 & 0xFF).astype(np.uint8)
        made[ranges(bounds[:-1] + byte, sizes)] |= part
    return made, bounds


def put_numbers(data: bytearray, places: np.ndarray, numbers: np.ndarray, width: int) -> None:
    """Write numbers, the last `width` bits of each, over bits of 0; places: their first bits."""
    count = (width + 14) // 8  # bytes, each of one number alone
    byte, bit = np.divmod(places, 8)
    window = numbers % (1 << width) << (8 * count - width - bit)
    buffer = np.frombuffer(data, np.uint8)
    for n in range(count):
        buffer[byte + n] |= (window >> 8 * (count - 1 - n) & 0xFF).astype(np.uint8)


def ue_codewords(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return values and lengths of the codewords ue(v) (9.1)."""
    values = numbers + 1
    return values, 2 * np.floor(np.log2(values)).astype(np.int64) + 1


class BitWriter:
    """A growing row of bits, the most significant of each value first."""

    def __init__(self) -> None:
        """Begin with no bits."""
        self._parts: list[bytes] = []  # the lowest bit of each byte counts: ASCII digits do too

    def __len__(self) -> int:
        """Return the number of bits."""
        return sum(map(len, self._parts))

    def u(self, width: int, value: int) -> "BitWriter":
        """Append `value` in `width` bits."""
        assert 0 <= value < 1 << width, f"u({width}) of {value}"
        self._parts.append(format(value, f"0{width}b").encode())
        return self

    def ue(self, value: int) -> "BitWriter":
        """Append an unsigned Exp-Golomb code."""
        assert 0 <= value <= 2**32 - 2, f"ue(v) of {value}"
        digits = format(value + 1, "b")
        self._parts.append(digits.rjust(2 * len(digits) - 1, "0").encode())
        return self

    def se(self, value: int) -> "BitWriter":
        """Append a signed Exp-Golomb code."""
        return self.ue(2 * value - 1 if value > 0 else -2 * value)

    def array(self) -> np.ndarray:
        """Return all bits, (n,) uint8 of 0 and 1."""
        return np.frombuffer(b"".join(self._parts), np.uint8) & 1


class BitReader:
    """Bits of an RBSP, read from its first one on; `position` is the next bit's number."""

    def __init__(self, data: bytes) -> None:
        """Begin at the first bit of `data`."""
        self._data = data
        self.position = 0

    def u(self, width: int) -> int:
        """Return the next `width` bits."""
        end = self.position + width
        assert end <= 8 * len(self._data), f"the data end before bit {end}"
        part = self._data[self.position // 8 : (end + 7) // 8]
        self.position = end
        return int.from_bytes(part, "big") >> (-end % 8) & ((1 << width) - 1)

    def ue(self) -> int:
        """Return an unsigned Exp-Golomb code."""
        zeros = 0
        while not self.u(1):
            zeros += 1
        return (1 << zeros) + self.u(zeros) - 1

    def se(self) -> int:
        """Return a signed Exp-Golomb code."""
        value = self.ue()
        return (value + 1) // 2 if value % 2 else -(value // 2)


def closed(bits: np.ndarray) -> bytes:
    """Return an RBSP: bits, (n,) uint8 of 0 and 1, and rbsp_trailing_bits."""
    return np.packbits(np.append(np.asarray(bits, np.uint8), np.uint8(1))).tobytes()


def escape(rbsp: bytes) -> bytes:
    """Return a NAL unit's payload: `rbsp` with emulation prevention bytes."""
    return _EMULATION.sub(b"\x00\x00\x03", rbsp)
