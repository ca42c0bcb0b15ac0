"""Reading x264's I slices in Baseline profile, so that the data of each can be taken out of it.

Source: ITU-T H.264, 7.3.2.1, 7.3.2.2 and 7.3.3. What x264 was not asked for is refused.
"""

from dataclasses import dataclass

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.h264.bits import BitReader, BitStrings
from goalreel.h264.nal import Nal

_BASELINE = 66  # profile_idc: CAVLC, 8 bits, 4:2:0
_I = 2  # slice_type modulo 5, Table 7-6
_NO_DEBLOCKING = 1


@dataclass(frozen=True)
class SequenceParameters:
    """What slice headers need of a sequence parameter set."""

    macroblocks: tuple[int, int]  # (columns, rows)
    frame_num_bits: int
    poc_bits: int  # 0 where slices hold no picture order count


@dataclass(frozen=True)
class PictureParameters:
    """What slice headers need of a picture parameter set."""

    initial_qp: int


@dataclass(frozen=True)
class IntraSlice:
    """A picture coded as one I slice."""

    data: np.ndarray  # the slice data, (n,) uint8 of 0 and 1
    qp: int  # of the slice header
    macroblocks: int  # how many
    header_bits: int  # before the data


def read_sps(rbsp: bytes) -> SequenceParameters:
    """Return what a sequence parameter set says. Raises GoalreelError if it is none of x264's."""
    bits = BitReader(rbsp)
    _expect("profile_idc", bits.u(8), _BASELINE)
    bits.u(16)  # constraint flags, level_idc
    _expect("seq_parameter_set_id", bits.ue(), 0)
    frame_num_bits, order = bits.ue(12) + 4, bits.ue()
    _expect("pic_order_cnt_type", order, 0, 2)
    poc_bits = bits.ue(12) + 4 if order == 0 else 0
    bits.ue(), bits.flag()  # max_num_ref_frames, gaps_in_frame_num_value_allowed_flag
    columns, rows = bits.ue() + 1, bits.ue() + 1
    _expect("frame_mbs_only_flag", bits.u(1), 1)
    return SequenceParameters((columns, rows), frame_num_bits, poc_bits)


def read_pps(rbsp: bytes) -> PictureParameters:
    """Return what a picture parameter set says. Raises GoalreelError if it is none of x264's."""
    bits = BitReader(rbsp)
    _expect("pic_parameter_set_id", bits.ue(), 0)
    _expect("seq_parameter_set_id", bits.ue(), 0)
    _expect("entropy_coding_mode_flag", bits.u(1), 0)
    _expect("bottom_field_pic_order_in_frame_present_flag", bits.u(1), 0)
    _expect("num_slice_groups_minus1", bits.ue(), 0)
    bits.ue(), bits.ue(), bits.u(3)  # references in use, weighted prediction
    qp = 26 + bits.se()
    bits.se()  # pic_init_qs_minus26
    _expect("chroma_qp_index_offset", bits.se(), 0)
    _expect("deblocking_filter_control_present_flag", bits.u(1), 1)
    _expect("constrained_intra_pred_flag", bits.u(1), 0)
    _expect("redundant_pic_cnt_present_flag", bits.u(1), 0)
    bits.trailing()  # no transform_8x8_mode_flag
    return PictureParameters(qp)


def read_slice(nal: Nal, sps: SequenceParameters, pps: PictureParameters) -> IntraSlice:
    """Return an IDR picture's only slice. Raises GoalreelError if it is another, or broken."""
    bits, macroblocks = BitReader(nal.rbsp), sps.macroblocks[0] * sps.macroblocks[1]
    _expect("first_mb_in_slice", bits.ue(), 0)
    _expect("slice_type", bits.ue() % 5, _I)
    _expect("pic_parameter_set_id", bits.ue(), 0)
    bits.u(sps.frame_num_bits), bits.ue(), bits.u(sps.poc_bits)  # the second is idr_pic_id
    bits.u(2)  # dec_ref_pic_marking
    qp = pps.initial_qp + bits.se()
    _expect("disable_deblocking_filter_idc", bits.ue(), _NO_DEBLOCKING)
    data = np.unpackbits(np.frombuffer(nal.rbsp, np.uint8), count=bits.end())
    return IntraSlice(data[bits.position :], qp, macroblocks, bits.position)


def slice_data(
    stream: bytes, starts: np.ndarray, ends: np.ndarray, headers: np.ndarray
) -> BitStrings:
    """Return the data of slices of an Annex B stream, without escapes.

    starts, ends: where their NAL units are; headers: the bits of each one's header.
    """
    data = np.frombuffer(stream, np.uint8)
    zero = data == 0
    escapes = np.flatnonzero(zero[:-2] & zero[1:-1] & (data[2:] == 3)) + 2
    data = np.delete(data, escapes)
    starts, ends = (bounds - np.searchsorted(escapes, bounds) for bounds in (starts, ends))
    last = data[ends - 1].astype(np.int64)
    trailing = np.log2(last & -last).astype(np.int64) + 1  # rbsp_trailing_bits
    first = 8 * (starts + 1) + headers
    return BitStrings(data, first, 8 * ends - trailing - first)


def _expect(name: str, actual: int, *allowed: int) -> None:
    if actual not in allowed:
        expected = " or ".join(map(str, allowed))
        raise GoalreelError(f"x264 coded {name} {actual}; expected: {expected}")
