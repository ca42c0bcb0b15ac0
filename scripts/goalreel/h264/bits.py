"""Bits as a NAL unit holds them: fixed widths, Exp-Golomb codes, trailing bits, escapes.

Source: ITU-T H.264, 7.2 (reading), 7.3.1 and 7.4.1 (emulation prevention), 7.3.2.11 (trailing
bits), 9.1 (Exp-Golomb).
"""

import re
from typing import NamedTuple

import numpy as np

from goalreel.arrays import ranges
from goalreel.errors import GoalreelError

_LONGEST_UE = 31  # leading zeros: 9.1 and 7.4 end at codeNum 2**32 - 2
LARGEST_UE = 2**32 - 2
_EMULATION = re.compile(rb"\x00\x00(?=[\x00-\x03])")
_FORBIDDEN = re.compile(rb"\x00\x00(?:[\x00-\x02]|\x03[^\x00-\x03])", re.DOTALL)


class BitError(GoalreelError):
    """Bits that end too early, or a code that the standard does not know."""


class BitStrings(NamedTuple):
    """Strings of bits, each somewhere in the same bytes."""

    data: np.ndarray  # (m,) uint8
    starts: np.ndarray  # (n,) int64, the number of each one's first bit
    lengths: np.ndarray  # (n,) int64


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


def ue_codewords(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return values and lengths of the codewords ue(v) (9.1)."""
    values = numbers + 1
    return values, 2 * np.floor(np.log2(values)).astype(np.int64) + 1


class BitWriter:
    """A growing row of bits, the most significant of each value first."""

    def __init__(self) -> None:
        """Begin with no bits."""
        self._parts: list[bytes] = []  # the lowest bit of each byte counts: ASCII digits do too

    def u(self, width: int, value: int) -> "BitWriter":
        """Append `value` in `width` bits. Raises BitError if it does not fit."""
        if not 0 <= value < 1 << width:
            raise BitError(f"u({width}): {value}; allowed: 0 to {(1 << width) - 1}")
        if width:
            self._parts.append(format(value, f"0{width}b").encode())
        return self

    def ue(self, value: int) -> "BitWriter":
        """Append an unsigned Exp-Golomb code. Raises BitError outside of 0 to 2**32 - 2."""
        if not 0 <= value <= LARGEST_UE:
            raise BitError(f"ue(v): {value}; allowed: 0 to {LARGEST_UE}")
        digits = format(value + 1, "b")
        self._parts.append(digits.rjust(2 * len(digits) - 1, "0").encode())
        return self

    def se(self, value: int) -> "BitWriter":
        """Append a signed Exp-Golomb code. Raises BitError from 2**31 on, on either side."""
        if abs(value) >= 1 << 31:
            raise BitError(f"se(v): {value}; allowed: less than 2**31 on either side")
        return self.ue(2 * value - 1 if value > 0 else -2 * value)

    def append(self, bits: np.ndarray) -> "BitWriter":
        """Append an array of bits, (n,) uint8 of 0 and 1."""
        self._parts.append(np.asarray(bits, np.uint8).tobytes())
        return self

    def array(self) -> np.ndarray:
        """Return all bits, (n,) uint8 of 0 and 1."""
        return np.frombuffer(b"".join(self._parts), np.uint8) & 1


class BitReader:
    """Bits of an RBSP, read from its first one on; `position` is the next bit's number."""

    def __init__(self, data: bytes) -> None:
        """Begin at the first bit of `data`."""
        self._data = data
        self.position = 0

    @property
    def remaining(self) -> int:
        """Return how many bits are left."""
        return 8 * len(self._data) - self.position

    def u(self, width: int) -> int:
        """Return the next `width` bits. Raises BitError at the end of the data."""
        if width > self.remaining:
            raise BitError(
                f"the data end {self.remaining} bits after bit {self.position}; wanted: {width}"
            )
        end = self.position + width
        part = self._data[self.position // 8 : (end + 7) // 8]
        self.position = end
        return int.from_bytes(part, "big") >> (-end % 8) & ((1 << width) - 1)

    def flag(self) -> bool:
        """Return the next bit. Raises BitError at the end of the data."""
        return bool(self.u(1))

    def ue(self, largest: int = LARGEST_UE) -> int:
        """Return an unsigned Exp-Golomb code. Raises BitError at the end, and over `largest`."""
        start, zeros = self.position, 0
        while not self.u(1):
            zeros += 1
            if zeros > _LONGEST_UE:
                raise BitError(f"bit {start}: an Exp-Golomb code of more than 32 bits")
        value = (1 << zeros) + self.u(zeros) - 1
        if value > largest:
            raise BitError(f"bit {start}: ue(v) of {value}; allowed: 0 to {largest}")
        return value

    def se(self) -> int:
        """Return a signed Exp-Golomb code. Raises BitError at the end, and beyond 32 bits."""
        value = self.ue()
        return (value + 1) // 2 if value % 2 else -(value // 2)

    def end(self) -> int:
        """Return the number of the stop bit, with which rbsp_trailing_bits begin.

        Raises BitError if there is none at or after `position`.
        """
        held = self._data.rstrip(b"\x00")
        last = held[-1] if held else 0
        stop = 8 * len(held) - (last & -last).bit_length()
        if not held or stop < self.position:
            raise BitError(f"no stop bit from bit {self.position} on")
        return stop

    def trailing(self) -> None:
        """Read rbsp_trailing_bits. Raises BitError if something else comes."""
        if self.end() != self.position or self.remaining > 8:
            raise BitError(f"trailing bits should come at bit {self.position}, there is more")
        self.position = 8 * len(self._data)


def closed(bits: np.ndarray) -> bytes:
    """Return an RBSP: bits, (n,) uint8 of 0 and 1, and rbsp_trailing_bits."""
    return np.packbits(np.append(np.asarray(bits, np.uint8), np.uint8(1))).tobytes()


def escape(rbsp: bytes) -> bytes:
    """Return a NAL unit's payload: `rbsp` with emulation prevention bytes.

    Raises BitError if it ends in a zero byte, which no RBSP with a stop bit does.
    """
    if rbsp.endswith(b"\x00"):
        raise BitError("an RBSP that ends in a zero byte; its trailing bits are missing")
    return _EMULATION.sub(b"\x00\x00\x03", rbsp)


def unescape(payload: bytes) -> bytes:
    """Return the RBSP in a NAL unit's payload.

    Raises BitError at three bytes that may not stand in one: 00 00 00, 00 00 01, 00 00 02, at an
    escape of a byte that needs none, and at a zero byte at the end.
    """
    if found := _FORBIDDEN.search(payload):
        raise BitError(f"byte {found.start()}: {found[0].hex(' ')}; forbidden in a NAL unit")
    if payload.endswith(b"\x00"):
        raise BitError(f"a NAL unit of {len(payload)} bytes ends in a zero byte")
    return payload.replace(b"\x00\x00\x03", b"\x00\x00")
