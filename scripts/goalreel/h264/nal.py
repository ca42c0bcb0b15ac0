"""NAL units: Annex B streams taken apart, and streams and MP4 samples put together.

Source: ITU-T H.264, 7.3.1 and Annex B; ISO/IEC 14496-15, 5.3.3 (samples, lengths of 2 or 4 bytes).
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.h264.bits import escape, unescape

# nal_unit_type, Table 7-1
SLICE, IDR, SPS, PPS = 1, 5, 7, 8
_START_CODE = re.compile(rb"\x00\x00\x01")
_LENGTH = 4  # bytes


class Nal(NamedTuple):
    """A NAL unit: nal_ref_idc (0 to 3), nal_unit_type (0 to 31), and its RBSP without escapes."""

    ref_idc: int
    type: int
    rbsp: bytes


def pack(ref_idc: int, type: int, rbsp: bytes) -> bytes:  # noqa: A002 (the standard's name)
    """Return a NAL unit's bytes, escapes included. Raises GoalreelError if a number is too large.

    rbsp: with its trailing bits.
    """
    if not (0 <= ref_idc <= 3 and 0 <= type <= 31):
        raise GoalreelError(
            f"nal_ref_idc {ref_idc}, nal_unit_type {type}; allowed: 0 to 3, 0 to 31"
        )
    return bytes([ref_idc << 5 | type]) + escape(rbsp)


def unpack(unit: bytes) -> Nal:
    """Return a NAL unit, given its bytes. Raises GoalreelError if they are none."""
    if not unit:
        raise GoalreelError("an empty NAL unit")
    if unit[0] & 0x80:
        raise GoalreelError(f"a NAL unit that begins with {unit[0]:02x}: forbidden_zero_bit is set")
    return Nal(unit[0] >> 5, unit[0] & 31, unescape(unit[1:]))


def annex_b(units: Iterable[bytes]) -> bytes:
    """Return a byte stream of NAL units as `pack` makes them, each after a 4-byte start code."""
    return b"".join(b"\x00\x00\x00\x01" + unit for unit in units)


def split(data: bytes) -> list[Nal]:
    """Return the NAL units of an Annex B stream, none of an empty one.

    Raises GoalreelError if it does not begin with a start code or a unit is faulty.
    """
    codes = list(_START_CODE.finditer(data))
    places = [code.start() for code in codes] + [len(data)]
    if data[: places[0]].strip(b"\x00"):
        raise GoalreelError(f"a stream that begins with {data[:8].hex(' ')}: not a start code")
    # Zeros before a start code belong to it, or are trailing_zero_8bits: no unit ends in one.
    return [
        unpack(data[code.end() : end].rstrip(b"\x00"))
        for code, end in zip(codes, places[1:], strict=True)
    ]


def units_of(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Return where the NAL units of an Annex B stream begin and end, (n,) each."""
    zero = np.frombuffer(data, np.uint8) == 0
    one = np.frombuffer(data, np.uint8) == 1
    codes = np.flatnonzero(zero[:-2] & zero[1:-1] & one[2:])
    ends = np.append(codes[1:], len(data))
    return codes + 3, ends - zero[ends - 1]  # a start code may have a zero more


def length_prefixed(units: Iterable[bytes], length_bytes: int = _LENGTH) -> bytes:
    """Return an MP4 sample of NAL units as `pack` makes them, each after its length."""
    return b"".join(len(unit).to_bytes(length_bytes, "big") + unit for unit in units)
