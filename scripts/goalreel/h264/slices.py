"""Write the slices of assembled films: slice headers, and NAL units of header and slice data.

The headers match the parameter sets of `parameter_sets`: frames, CAVLC, no deblocking and one
reference picture. In a chained stream the reference is the previous picture in decoding order;
in any other stream it is the IDR picture. Slice data are arrays of bits.
Source: Rec. ITU-T H.264, 7.3.3.
"""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from goalreel.h264.bits import IDR, SLICE, BitWriter, pack, to_rbsp
from goalreel.h264.parameter_sets import FRAME_NUM_BITS, INITIAL_QP, POC_BITS
from goalreel.h264.prediction import LOG2_DENOMINATOR

# Table 7-6. slice_type + 5 means that all slices of the picture have it, and takes 4 bits more.
_TYPES, _ALL = {"P": 0, "I": 2}, 5
_NO_DEBLOCKING = 1


@dataclass(frozen=True)
class SliceHeader:
    """A slice header of a frame."""

    type: str  # I or P
    first_mb: int  # first_mb_in_slice, in raster order
    idr_pic_id: int | None = None  # None unless the picture is an IDR picture
    poc_lsb: int | None = 0  # pic_order_cnt_lsb, None in a chained stream
    ref_idc: int = 0  # nal_ref_idc, 0 if no picture refers to this one
    qp: int = 26
    # P slices: (weight, offset) of Y, U and V for each further entry of the reference picture in
    # list 0, see prediction.plain_color.
    colors: tuple = ()
    frame_num: int = 0  # 0 for the value of the kind of picture


class HeaderBits(NamedTuple):
    """The bits of a slice header, without emulation prevention bytes."""

    bits: np.ndarray  # (n,) uint8, one bit per element, read-only
    frame_num: int  # bit position of frame_num
    order: int  # bit position of pic_order_cnt_lsb


@cache  # thousands of slices share a header
def header_bits(header: SliceHeader) -> HeaderBits:
    """Return the bits of a slice header and the positions of its counters."""
    code, chained = _TYPES[header.type], header.poc_lsb is None
    is_ordered = header.type == "P" and not chained
    bits = BitWriter().ue(header.first_mb).ue(code).ue(0)
    # pic_order_cnt_lsb may be 0. Its first byte then needs a bit of 1 before it; otherwise escapes
    # would depend on the value.
    if is_ordered and (len(bits) + FRAME_NUM_BITS) % 8 == 0:
        bits = BitWriter().ue(header.first_mb).ue(code + _ALL).ue(0)
    frame_num = len(bits)
    # Most slices of a chained stream get it later. Other P pictures are no references: always 1.
    bits.u(FRAME_NUM_BITS, header.frame_num or int(is_ordered))
    if header.idr_pic_id is not None:
        bits.ue(header.idr_pic_id)
    order = len(bits)
    if not chained:
        bits.u(POC_BITS, header.poc_lsb)
    if header.type == "P":
        _put_references(bits, len(header.colors))
        if not chained:
            _put_weights(bits, header.colors)
    if header.idr_pic_id is not None:
        bits.u(1, 0).u(1, 0)  # no_output_of_prior_pics_flag, long_term_reference_flag
    elif header.ref_idc:
        bits.u(1, 0)  # adaptive_ref_pic_marking_mode_flag
    all_bits = bits.se(header.qp - INITIAL_QP).ue(_NO_DEBLOCKING).to_array()
    all_bits.flags.writeable = False
    return HeaderBits(all_bits, frame_num, order)


def _put_references(bits: BitWriter, further: int) -> None:
    """Append the active references, one picture `further` + 1 times (7.3.3, 7.3.3.1)."""
    if not further:
        bits.u(2, 0)
        return
    bits.u(1, 1).ue(further).u(1, 1).ue(0).ue(0)  # the previous picture, by frame_num
    for _ in range(further):  # a full turn of frame_num: the same picture again
        bits.ue(0).ue((1 << FRAME_NUM_BITS) - 1)
    bits.ue(3)


def _put_weights(bits: BitWriter, colors: tuple) -> None:
    """Append pred_weight_table (7.3.3.2)."""
    denominator = LOG2_DENOMINATOR if colors else 0
    bits.ue(denominator).ue(denominator).u(1, 0).u(1, 0)  # entry 0 has the default weights
    for luma, *chroma in colors:
        for weights in ([luma], chroma):
            has_weights = any(weight != (1 << denominator, 0) for weight in weights)
            bits.u(1, int(has_weights))
            for weight, offset in weights if has_weights else ():
                bits.se(weight).se(offset)


def slice_nal(header: SliceHeader, data: np.ndarray) -> bytes:
    """Return a slice as a NAL unit, given its data as (n,) uint8, one bit per element."""
    rbsp = to_rbsp(np.concatenate([header_bits(header).bits, data]))
    return pack(header.ref_idc, SLICE if header.idr_pic_id is None else IDR, rbsp)
