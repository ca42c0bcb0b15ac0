"""Sequence and picture parameter sets: those of goalreel's assembled films, and x264's taken apart.

Source: ITU-T H.264, 7.3.2.1 and 7.3.2.2, A.2 (profiles), Annex E (video usability information);
ISO/IEC 14496-15, 5.3.3 (avcC).
"""

from dataclasses import dataclass
from fractions import Fraction

from goalreel.errors import GoalreelError
from goalreel.h264.bits import BitReader, BitWriter, closed
from goalreel.h264.levels import LARGEST_SIDE, smallest_level
from goalreel.h264.nal import PPS, SPS, pack

FRAME_NUM_BITS, POC_BITS = 4, 16
REFERENCES = 2  # frames that the decoder keeps
INITIAL_QP = 26
_MAIN, _HIGH = 77, 100
_PROFILES = (66, _MAIN, 88, _HIGH)  # Baseline, Main, Extended, High
_IS_MAIN = 0x40  # constraint_set1_flag; weighted prediction is all that Baseline lacks
_MOST_REFERENCES = 16  # A.3.1
_BT709, _CENTRE = 1, 1  # Tables E-3 to E-5; Figure E-1
_EXTENDED_SAR = 255  # Table E-1


@dataclass(frozen=True)
class Stream:
    """What a film's parameter sets depend on.

    size: (width, height) shown, in pixels, even. fps: anything that Fraction takes.
    """

    size: tuple[int, int]
    fps: Fraction

    @property
    def macroblocks(self) -> tuple[int, int]:
        """Return (columns, rows) of macroblocks that cover the picture."""
        return (self.size[0] + 15) // 16, (self.size[1] + 15) // 16


@dataclass(frozen=True)
class SequenceParameters:
    """What a sequence parameter set says, as far as slice headers and checks need it.

    macroblocks: (columns, rows); crop: luma pixels cut off, (left, right, top, bottom). What the
    VUI leaves out is None: fps; colour: primaries, transfer and matrix; reorder: num_reorder_frames
    and buffering: max_dec_frame_buffering.
    """

    id: int
    profile: int
    constraints: int
    level: int
    chroma_format: int
    frame_num_bits: int
    poc_type: int
    poc_bits: int
    poc_always_zero: bool
    references: int
    gaps: bool
    macroblocks: tuple[int, int]
    frame_mbs_only: bool
    crop: tuple[int, int, int, int]
    full_range: bool | None = None
    colour: tuple[int, int, int] | None = None
    chroma_location: int | None = None
    fps: Fraction | None = None
    reorder: int | None = None
    buffering: int | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Return (width, height) shown, in pixels."""
        left, right, top, bottom = self.crop
        columns, rows = self.macroblocks
        return 16 * columns - left - right, 16 * rows - top - bottom


@dataclass(frozen=True)
class PictureParameters:
    """What a picture parameter set says; num_ref_idx_l0_default and pic_init_qp as they count."""

    id: int
    sps_id: int
    cabac: bool
    bottom_field_pic_order: bool
    references: int
    weighted_pred: bool
    weighted_bipred: int
    initial_qp: int
    chroma_qp_offset: int
    deblocking_control: bool
    constrained_intra: bool
    redundant_pictures: bool
    transform_8x8: bool = False
    second_chroma_qp_offset: int = 0


def sps(stream: Stream) -> bytes:
    """Return the sequence parameter set, a NAL unit. Raises GoalreelError if no level fits."""
    fps = _checked(stream)
    columns, rows = stream.macroblocks
    level = smallest_level(columns, rows, fps, REFERENCES)
    bits = BitWriter().u(8, _MAIN).u(8, _IS_MAIN).u(8, level).ue(0)
    bits.ue(FRAME_NUM_BITS - 4).ue(0).ue(POC_BITS - 4).ue(REFERENCES).u(1, 0)
    bits.ue(columns - 1).ue(rows - 1).u(1, 1).u(1, 1)  # frame_mbs_only, direct_8x8_inference
    right, bottom = 16 * columns - stream.size[0], 16 * rows - stream.size[1]
    bits.u(1, int(right > 0 or bottom > 0))
    if right or bottom:
        bits.ue(0).ue(right // 2).ue(0).ue(bottom // 2)  # in pairs of pixels, Table 6-1
    bits.u(1, 1)  # vui_parameters_present_flag
    _write_vui(bits, fps, REFERENCES)
    return pack(3, SPS, closed(bits.array()))


def _write_vui(bits: BitWriter, fps: Fraction, buffering: int) -> None:
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


def pps() -> bytes:
    """Return the picture parameter set of all streams, a NAL unit."""
    bits = BitWriter().ue(0).ue(0).u(1, 0).u(1, 0)  # CAVLC, no bottom field's order
    bits.ue(0).ue(0).ue(0)  # one slice group, one reference in use
    bits.u(1, 1).u(2, 0).se(INITIAL_QP - 26).se(0).se(0)  # weights, qp, qs, no chroma offset
    bits.u(1, 1).u(1, 0).u(1, 0)  # deblocking control, free intra prediction, nothing redundant
    return pack(3, PPS, closed(bits.array()))


def configuration(stream: Stream) -> bytes:
    """Return the AVCDecoderConfigurationRecord, avcC, of a stream. Raises GoalreelError as sps."""
    sequence, picture = sps(stream), pps()
    head = bytes([1]) + sequence[1:4] + bytes([0xFC | 3, 0xE0 | 1])  # lengths of 4 bytes, one SPS
    units = [len(unit).to_bytes(2, "big") + unit for unit in (sequence, picture)]
    return head + units[0] + bytes([1]) + units[1]


def _checked(stream: Stream) -> Fraction:
    if any(length < 2 or length % 2 for length in stream.size):
        raise GoalreelError(f"size: {stream.size}; allowed: even numbers of pixels from 2 on")
    fps = Fraction(stream.fps)
    if fps <= 0 or fps.denominator >= 1 << 32 or fps.numerator >= 1 << 31:
        raise GoalreelError(f"fps: {stream.fps}; allowed: above 0, a fraction of 31-bit numbers")
    return fps


def read_sps(rbsp: bytes) -> SequenceParameters:
    """Return what a sequence parameter set says, given its RBSP.

    Raises GoalreelError if it is broken, or of a profile other than Baseline, Main, Extended and
    High, or has scaling matrices.
    """
    bits = BitReader(rbsp)
    profile, constraints, level = bits.u(8), bits.u(8), bits.u(8)
    if profile not in _PROFILES:
        raise GoalreelError(f"profile_idc {profile}; allowed: {', '.join(map(str, _PROFILES))}")
    identity, chroma = bits.ue(31), 1
    if profile == _HIGH:
        chroma = bits.ue(1)
        if bits.ue() or bits.ue() or bits.flag() or bits.flag():
            raise GoalreelError("an SPS with more than 8 bits a sample, or scaling matrices")
    frame_num_bits, poc_type = bits.ue(12) + 4, bits.ue(2)
    poc_bits, always_zero = 0, False
    if poc_type == 0:
        poc_bits = bits.ue(12) + 4
    elif poc_type == 1:
        always_zero = bits.flag()
        bits.se(), bits.se()
        for _ in range(bits.ue(255)):
            bits.se()
    references, gaps = bits.ue(_MOST_REFERENCES), bits.flag()
    columns, units = bits.ue(LARGEST_SIDE - 1) + 1, bits.ue(LARGEST_SIDE - 1) + 1
    progressive = bits.flag()
    if not progressive:
        bits.flag()  # mb_adaptive_frame_field_flag
    bits.flag()  # direct_8x8_inference_flag
    rows = units * (1 if progressive else 2)
    crop = (0, 0, 0, 0)
    if bits.flag():
        # Table 6-1, 7.4.2.1.1: in chroma samples, of both fields where there are two.
        across, down = 1 + chroma, (1 + chroma) * (1 if progressive else 2)
        crop = tuple(bits.ue(8 * LARGEST_SIDE * 2) * unit for unit in (across, across, down, down))
        if crop[0] + crop[1] >= 16 * columns or crop[2] + crop[3] >= 16 * rows:
            raise GoalreelError(f"an SPS that crops {crop} of {16 * columns}x{16 * rows} pixels")
    vui = _read_vui(bits) if bits.flag() else {}
    bits.trailing()
    return SequenceParameters(
        *(identity, profile, constraints, level, chroma, frame_num_bits, poc_type, poc_bits),
        *(always_zero, references, gaps, (columns, rows), progressive, crop),
        **vui,
    )


def _read_vui(bits: BitReader) -> dict:
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


def read_pps(rbsp: bytes) -> PictureParameters:
    """Return what a picture parameter set says, given its RBSP.

    Raises GoalreelError if it is broken, or has slice groups or scaling matrices.
    """
    bits = BitReader(rbsp)
    identity, sps_id, cabac, bottom = bits.ue(255), bits.ue(31), bits.flag(), bits.flag()
    if bits.ue(7):
        raise GoalreelError("a PPS with several slice groups")
    references = bits.ue(31) + 1
    bits.ue(31)  # num_ref_idx_l1_default_active_minus1
    weighted, bipred, qp = bits.flag(), bits.u(2), 26 + bits.se()
    bits.se()  # pic_init_qs_minus26
    offset = bits.se()
    if not 0 <= qp <= 51 or abs(offset) > 12:
        raise GoalreelError(f"a PPS with pic_init_qp {qp} and chroma_qp_index_offset {offset}")
    flags = [bits.flag() for _ in range(3)]
    extension = (False, offset)
    if bits.end() > bits.position:
        transform = bits.flag()
        if bits.flag():
            raise GoalreelError("a PPS with scaling matrices")
        extension = (transform, bits.se())
    bits.trailing()
    return PictureParameters(
        identity,
        sps_id,
        cabac,
        bottom,
        references,
        weighted,
        bipred,
        qp,
        offset,
        *flags,
        *extension,
    )
