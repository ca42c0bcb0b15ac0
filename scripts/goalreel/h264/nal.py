"""Build NAL units, Annex B byte streams and the length-prefixed units of MP4 samples.

Source: Rec. ITU-T H.264, 7.3.1 and Annex B; ISO/IEC 14496-15, 5.3.3 (samples).
"""

from collections.abc import Iterable

from goalreel.h264.bits import escape

# nal_unit_type (Table 7-1)
SLICE, IDR, SPS, PPS = 1, 5, 7, 8


def pack(ref_idc: int, type: int, rbsp: bytes) -> bytes:  # noqa: A002 (the standard's name)
    """Return a NAL unit: its header byte (nal_ref_idc, nal_unit_type) and the escaped RBSP."""
    return bytes([ref_idc << 5 | type]) + escape(rbsp)


def annex_b(units: Iterable[bytes]) -> bytes:
    """Return a byte stream of NAL units, each after a start code of 4 bytes."""
    return b"".join(b"\x00\x00\x00\x01" + unit for unit in units)


def length_prefixed(unit: bytes) -> bytes:
    """Return a NAL unit after its length in 4 bytes, as MP4 samples hold it."""
    return len(unit).to_bytes(4, "big") + unit
