"""Write the sequence and picture parameter sets of assembled films.

There are two kinds of streams. In a chained stream each picture refers to the one before it. In
any other stream the pictures of an episode refer to its first one.

Source: Rec. ITU-T H.264, 7.3.2.1 and 7.3.2.2, A.2 (profiles), Annex E (video usability
information); ISO/IEC 14496-15, 5.3.3 (avcC).
"""

from dataclasses import dataclass
from fractions import Fraction

from goalreel.h264.bits import BitWriter, to_rbsp
from goalreel.h264.levels import smallest_level
from goalreel.h264.nal import PPS, SPS, pack

FRAME_NUM_BITS, POC_BITS = 4, 16
INITIAL_QP = 26
# (profile_idc, constraint flags). Main has weighted prediction, Constrained Baseline allows any
# number of slices per picture (A.3.3).
_MAIN, _BASELINE = (77, 0x40), (66, 0xC0)
_POC_CODED, _POC_IN_DECODING_ORDER = 0, 2  # pic_order_cnt_type
_BT709, _CENTER = 1, 1  # Tables E-3 to E-5; Figure E-1


@dataclass(frozen=True)
class StreamParameters:
    """The properties of a film that its parameter sets depend on."""

    size: tuple[int, int]  # (width, height) after cropping, in pixels, even
    fps: Fraction
    chained: bool = False  # pictures refer to the one before instead of the first one

    @property
    def macroblocks(self) -> tuple[int, int]:
        """The (columns, rows) of macroblocks that cover the picture."""
        return (self.size[0] + 15) // 16, (self.size[1] + 15) // 16

    @property
    def references(self) -> int:
        """The number of frames in the decoded picture buffer."""
        return 1 if self.chained else 2

    @property
    def length_bytes(self) -> int:
        """The size in bytes of a NAL unit's length field in a sample.

        A slice of a chained stream holds at most one row of macroblocks, each below 8192 bits.
        """
        return 2 if self.chained and self.macroblocks[0] <= 64 else 4


def sps(stream: StreamParameters) -> bytes:
    """Return the sequence parameter set as a NAL unit. Raises GoalreelError if no level fits."""
    fps = Fraction(stream.fps)
    columns, rows = stream.macroblocks
    level = smallest_level(columns, rows, fps, stream.references)
    profile, flags = _BASELINE if stream.chained else _MAIN
    bits = BitWriter().u(8, profile).u(8, flags).u(8, level).ue(0).ue(FRAME_NUM_BITS - 4)
    if stream.chained:
        bits.ue(_POC_IN_DECODING_ORDER)
    else:
        bits.ue(_POC_CODED).ue(POC_BITS - 4)
    bits.ue(stream.references).u(1, 0)
    bits.ue(columns - 1).ue(rows - 1).u(1, 1).u(1, 1)  # frame_mbs_only, direct_8x8_inference
    right, bottom = 16 * columns - stream.size[0], 16 * rows - stream.size[1]
    bits.u(1, int(right > 0 or bottom > 0))
    if right or bottom:
        bits.ue(0).ue(right // 2).ue(0).ue(bottom // 2)  # crop units are 2 pixels (Table 6-1)
    bits.u(1, 1)  # vui_parameters_present_flag
    _write_vui(bits, fps, stream.references)
    return pack(3, SPS, to_rbsp(bits.to_array()))


def _write_vui(bits: BitWriter, fps: Fraction, references: int) -> None:
    """Append the VUI parameters (E.1.1): BT.709, limited range, fixed rate, no reordering."""
    bits.u(1, 0).u(1, 0)  # no aspect ratio, no overscan information
    bits.u(1, 1).u(3, 5).u(1, 0).u(1, 1)  # unspecified video_format, limited range, colors follow
    bits.u(8, _BT709).u(8, _BT709).u(8, _BT709)
    bits.u(1, 1).ue(_CENTER).ue(_CENTER)
    # A tick lasts one field, half a frame (E.2.1, time_scale). The last flag: fixed frame rate.
    bits.u(1, 1).u(32, fps.denominator).u(32, 2 * fps.numerator).u(1, 1)
    bits.u(1, 0).u(1, 0).u(1, 0)  # no HRD parameters, no pic_struct_present_flag
    bits.u(1, 1).u(1, 1).ue(0).ue(0)  # bitstream_restriction without size limits
    bits.ue(10).ue(10).ue(0).ue(references)  # motion vectors below 2**10, no reordering


def pps(stream: StreamParameters) -> bytes:
    """Return the picture parameter set as a NAL unit."""
    bits = BitWriter().ue(0).ue(0).u(1, 0).u(1, 0)  # CAVLC, no bottom field order
    bits.ue(0).ue(0).ue(0)  # one slice group, one active reference
    weighted = int(not stream.chained)
    bits.u(1, weighted).u(2, 0).se(INITIAL_QP - 26).se(0).se(0)  # weights, QP, QS, no chroma offset
    bits.u(1, 1).u(1, 0).u(1, 0)  # deblocking control, unconstrained intra
    return pack(3, PPS, to_rbsp(bits.to_array()))


def configuration(stream: StreamParameters) -> bytes:
    """Return the AVCDecoderConfigurationRecord (avcC) of a stream. Raises as `sps` does."""
    sequence, picture = sps(stream), pps(stream)
    head = bytes([1]) + sequence[1:4] + bytes([0xFC | stream.length_bytes - 1, 0xE0 | 1])  # one SPS
    units = [len(unit).to_bytes(2, "big") + unit for unit in (sequence, picture)]
    return head + units[0] + bytes([1]) + units[1]
