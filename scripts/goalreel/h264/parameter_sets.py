"""Sequence and picture parameter sets of goalreel's assembled films.

Source: ITU-T H.264, 7.3.2.1 and 7.3.2.2, A.2 (profiles), Annex E (video usability information);
ISO/IEC 14496-15, 5.3.3 (avcC).
"""

from dataclasses import dataclass
from fractions import Fraction

from goalreel.h264.bits import BitWriter, closed
from goalreel.h264.levels import smallest_level
from goalreel.h264.nal import PPS, SPS, pack

FRAME_NUM_BITS, POC_BITS = 4, 16
INITIAL_QP = 26
# profile_idc, constraint flags: Main, for weighted prediction; Constrained Baseline, whose pictures
# may have any number of slices (A.3.3).
_MAIN, _BASELINE = (77, 0x40), (66, 0xC0)
_POC_SENT, _POC_OF_DECODING = 0, 2  # pic_order_cnt_type
_BT709, _CENTRE = 1, 1  # Tables E-3 to E-5; Figure E-1


@dataclass(frozen=True)
class StreamParameters:
    """What a film's parameter sets depend on."""

    size: tuple[int, int]  # (width, height) shown, in pixels, even
    fps: Fraction
    chained: bool = False  # whether a picture refers to the one before it, and not to its card

    @property
    def macroblocks(self) -> tuple[int, int]:
        """Return (columns, rows) of macroblocks that cover the picture."""
        return (self.size[0] + 15) // 16, (self.size[1] + 15) // 16

    @property
    def references(self) -> int:
        """Return how many frames the decoder keeps."""
        return 1 if self.chained else 2

    @property
    def length_bytes(self) -> int:
        """Return how many bytes the length of a NAL unit takes in a sample.

        A chained stream's are rows of macroblocks at most, each of less than 8192 bits.
        """
        return 2 if self.chained and self.macroblocks[0] <= 64 else 4


def sps(stream: StreamParameters) -> bytes:
    """Return the sequence parameter set, a NAL unit. Raises GoalreelError if no level fits."""
    fps = Fraction(stream.fps)
    columns, rows = stream.macroblocks
    level = smallest_level(columns, rows, fps, stream.references)
    profile, flags = _BASELINE if stream.chained else _MAIN
    bits = BitWriter().u(8, profile).u(8, flags).u(8, level).ue(0).ue(FRAME_NUM_BITS - 4)
    if stream.chained:
        bits.ue(_POC_OF_DECODING)
    else:
        bits.ue(_POC_SENT).ue(POC_BITS - 4)
    bits.ue(stream.references).u(1, 0)
    bits.ue(columns - 1).ue(rows - 1).u(1, 1).u(1, 1)  # frame_mbs_only, direct_8x8_inference
    right, bottom = 16 * columns - stream.size[0], 16 * rows - stream.size[1]
    bits.u(1, int(right > 0 or bottom > 0))
    if right or bottom:
        bits.ue(0).ue(right // 2).ue(0).ue(bottom // 2)  # in pairs of pixels, Table 6-1
    bits.u(1, 1)  # vui_parameters_present_flag
    _write_vui(bits, fps, stream.references)
    return pack(3, SPS, closed(bits.array()))


def _write_vui(bits: BitWriter, fps: Fraction, references: int) -> None:
    """Append the VUI parameters, E.1.1: BT.709, limited range, fixed rate, nothing reordered."""
    bits.u(1, 0).u(1, 0)  # no aspect ratio, no overscan
    bits.u(1, 1).u(3, 5).u(1, 0).u(1, 1)  # unspecified video format, limited range, colors
    bits.u(8, _BT709).u(8, _BT709).u(8, _BT709)
    bits.u(1, 1).ue(_CENTRE).ue(_CENTRE)
    # A tick is a field's time: E.2.1, time_scale. The frame rate is fixed.
    bits.u(1, 1).u(32, fps.denominator).u(32, 2 * fps.numerator).u(1, 1)
    bits.u(1, 0).u(1, 0).u(1, 0)  # no HRD parameters, no pic_struct
    bits.u(1, 1).u(1, 1).ue(0).ue(0)  # no limits on bytes and bits
    bits.ue(10).ue(10).ue(0).ue(references)  # vectors below 2**10, nothing reordered


def pps(stream: StreamParameters) -> bytes:
    """Return the picture parameter set of a stream, a NAL unit."""
    bits = BitWriter().ue(0).ue(0).u(1, 0).u(1, 0)  # CAVLC, no bottom field's order
    bits.ue(0).ue(0).ue(0)  # one slice group, one reference in use
    weighted = int(not stream.chained)
    bits.u(1, weighted).u(2, 0).se(INITIAL_QP - 26).se(0).se(0)  # weights, qp, qs, no chroma offset
    bits.u(1, 1).u(1, 0).u(1, 0)  # deblocking control, free intra prediction, nothing redundant
    return pack(3, PPS, closed(bits.array()))


def configuration(stream: StreamParameters) -> bytes:
    """Return the AVCDecoderConfigurationRecord, avcC, of a stream. Raises GoalreelError as sps."""
    sequence, picture = sps(stream), pps(stream)
    head = bytes([1]) + sequence[1:4] + bytes([0xFC | stream.length_bytes - 1, 0xE0 | 1])  # one SPS
    units = [len(unit).to_bytes(2, "big") + unit for unit in (sequence, picture)]
    return head + units[0] + bytes([1]) + units[1]
