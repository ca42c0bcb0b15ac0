"""NAL units: made, and put together to streams and MP4 samples.

Source: ITU-T H.264, 7.3.1 and Annex B; ISO/IEC 14496-15, 5.3.3 (samples).
"""

from collections.abc import Iterable

from goalreel.h264.bits import escape

# nal_unit_type, Table 7-1
SLICE, IDR, SPS, PPS = 1, 5, 7, 8


def pack(ref_idc: int, type: int, rbsp: bytes) -> bytes:  # noqa: A002 (the standard's name)
    """Return a NAL unit's bytes, escapes included.

    Args:
        ref_idc: nal_ref_idc, 0 to 3.
        type: nal_unit_type, 0 to 31.
        rbsp: the content with its trailing bits.
    """
    return bytes([ref_idc << 5 | type]) + escape(rbsp)


def annex_b(units: Iterable[bytes]) -> bytes:
    """Return a byte stream of NAL units as `pack` makes them, each after a 4-byte start code."""
    return b"".join(b"\x00\x00\x00\x01" + unit for unit in units)


def length_prefixed(unit: bytes) -> bytes:
    """Return a NAL unit as an MP4 sample holds it, after its length in 4 bytes."""
    return len(unit).to_bytes(4, "big") + unit
