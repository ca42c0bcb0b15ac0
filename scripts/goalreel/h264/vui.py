"""Video usability information: colours, frame rate and how pictures are ordered.

Source: ITU-T H.264, Annex E. It is the last part of a sequence parameter set, for which see
parameter_sets.
"""

from fractions import Fraction

from goalreel.h264.bits import BitReader, BitWriter

_BT709, _CENTRE = 1, 1  # Tables E-3 to E-5; Figure E-1
_EXTENDED_SAR = 255


def write_vui(bits: BitWriter, fps: Fraction, buffering: int) -> None:
    """Append the VUI parameters, E.1.1, of goalreel's films: BT.709, limited range, fixed rate.

    buffering: frames that the decoder keeps; none is reordered.
    """
    bits.u(1, 0).u(1, 0)  # no aspect ratio, no overscan
    bits.u(1, 1).u(3, 5).u(1, 0).u(1, 1)  # unspecified video format, limited range, colours
    bits.u(8, _BT709).u(8, _BT709).u(8, _BT709)
    bits.u(1, 1).ue(_CENTRE).ue(_CENTRE)
    # A tick is a field's time: E.2.1, time_scale. The frame rate is fixed.
    bits.u(1, 1).u(32, fps.denominator).u(32, 2 * fps.numerator).u(1, 1)
    bits.u(1, 0).u(1, 0).u(1, 0)  # no HRD parameters, no pic_struct
    bits.u(1, 1).u(1, 1).ue(0).ue(0)  # no limits on bytes and bits
    bits.ue(10).ue(10).ue(0).ue(buffering)  # vectors below 2**10, nothing reordered


def read_vui(bits: BitReader) -> dict:
    """Return what VUI parameters say: SequenceParameters' fields that they hold."""
    vui: dict = {}
    if bits.flag() and bits.u(8) == _EXTENDED_SAR:
        bits.u(32)
    if bits.flag():
        bits.flag()  # overscan_appropriate_flag
    if bits.flag():
        bits.u(3)
        vui["full_range"] = bits.flag()
        if bits.flag():
            vui["colour"] = (bits.u(8), bits.u(8), bits.u(8))
    if bits.flag():
        vui["chroma_location"] = bits.ue(5)
        bits.ue(5)
    if bits.flag():
        ticks, scale = bits.u(32), bits.u(32)
        bits.flag()
        vui["fps"] = Fraction(scale, 2 * ticks) if ticks else None
    nal, vcl = _read_hrd(bits), _read_hrd(bits)
    if nal or vcl:
        bits.flag()  # low_delay_hrd_flag
    bits.flag()  # pic_struct_present_flag
    if bits.flag():
        bits.flag()
        _ = bits.ue(16), bits.ue(16), bits.ue(16), bits.ue(16)
        vui["reorder"], vui["buffering"] = bits.ue(), bits.ue()
    return vui


def _read_hrd(bits: BitReader) -> bool:
    """Read HRD parameters, E.1.2, and the flag before them, which is returned."""
    if not bits.flag():
        return False
    count = bits.ue(31) + 1
    bits.u(8)
    for _ in range(count):
        bits.ue(), bits.ue(), bits.flag()
    bits.u(20)
    return True
