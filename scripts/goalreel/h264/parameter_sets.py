"""Write the sequence and picture parameter sets of assembled films.

There are two kinds of streams. In a chained stream each picture refers to the one before it. In
any other stream the pictures of an episode refer to its first one.
Source: Rec. ITU-T H.264, 7.3.2.1 and 7.3.2.2, A.2 (profiles), A.3.1 (levels), Annex E (video
usability information); ISO/IEC 14496-15, 5.3.3 (avcC).
"""

from dataclasses import dataclass
from fractions import Fraction

from goalreel.errors import GoalreelError
from goalreel.h264.bits import PPS, SPS, BitWriter, pack, to_rbsp

FRAME_NUM_BITS, POC_BITS = 4, 16
INITIAL_QP = 26
# (profile_idc, constraint flags). Main has weighted prediction, Constrained Baseline allows any
# number of slices per picture (A.3.3).
_MAIN, _BASELINE = (77, 0x40), (66, 0xC0)
_POC_CODED, _POC_IN_DECODING_ORDER = 0, 2  # pic_order_cnt_type
_BT709, _CENTER = 1, 1  # Tables E-3 to E-5; Figure E-1
# Table A-1: level_idc, MaxMBPS, MaxFS, MaxDpbMbs. Level 1b is left out: 1.1 covers it.
_LEVELS = (
    *[(10, 1485, 99, 396), (11, 3000, 396, 900), (12, 6000, 396, 2376), (13, 11880, 396, 2376)],
    *[(20, 11880, 396, 2376), (21, 19800, 792, 4752), (22, 20250, 1620, 8100)],
    *[(30, 40500, 1620, 8100), (31, 108000, 3600, 18000), (32, 216000, 5120, 20480)],
    *[(40, 245760, 8192, 32768), (41, 245760, 8192, 32768), (42, 522240, 8704, 34816)],
    *[(50, 589824, 22080, 110400), (51, 983040, 36864, 184320), (52, 2073600, 36864, 184320)],
    *[(60, 4177920, 139264, 696320), (61, 8355840, 139264, 696320)],
    *[(62, 16711680, 139264, 696320)],
)
_LARGEST_SIDE = 1055  # in macroblocks: sqrt(8 * MaxFS) of the highest level


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
        """The size in bytes of a NAL unit's length field in a sample."""
        # A slice of a chained stream holds at most one row of macroblocks, each below 8192 bits.
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


def smallest_level(columns: int, rows: int, fps: Fraction, references: int) -> int:
    """Return the level_idc of the smallest level that allows a stream of macroblocks.

    `references` is the number of frames in the decoded picture buffer. Bit rates are not checked:
    they are unknown before encoding, and films stay far below the limits. Raises GoalreelError if
    the stream exceeds the highest level.
    """
    frame = columns * rows
    for level, rate, largest, buffer in _LEVELS:
        fits = frame <= largest and max(columns, rows) ** 2 <= 8 * largest
        if fits and frame * fps <= rate and references * frame <= buffer:
            return level
    raise GoalreelError(
        f"Frames of {16 * columns}x{16 * rows} pixels at {fps} fps exceed H.264's highest level. "
        f"Lower the frame size or film.fps.\n  Limits in macroblocks of 16x16 pixels: "
        f"{largest} per frame, {rate} per second, {_LARGEST_SIDE} per side"
    )


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
