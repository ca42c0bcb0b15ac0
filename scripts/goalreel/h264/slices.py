"""Slices of goalreel's assembled films: their headers, and NAL units of them and their data.

Source: ITU-T H.264, 7.3.3. The headers belong to the parameter sets that parameter_sets writes:
frames, CAVLC, one reference picture, no deblocking. It is the IDR picture, or, of a chained stream,
the picture before, in the order of decoding. Slice data are bits here.
"""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from goalreel.h264.bits import BitWriter, closed
from goalreel.h264.nal import IDR, SLICE, pack
from goalreel.h264.parameter_sets import FRAME_NUM_BITS, INITIAL_QP, POC_BITS
from goalreel.h264.prediction import LOG2_DENOMINATOR

# Table 7-6. The codes that are 5 more say so of all the picture's slices, and are 4 bits longer.
_TYPES, _ALL = {"P": 0, "I": 2}, 5
_NO_DEBLOCKING = 1


@dataclass(frozen=True)
class SliceHeader:
    """A slice header of a frame."""

    type: str  # I or P
    first_mb: int  # its first macroblock's number, in raster order
    idr_pic_id: int | None = None  # in IDR pictures only
    poc_lsb: int | None = 0  # pic_order_cnt_lsb, None in a chained stream
    ref_idc: int = 0  # nal_ref_idc, 0 for a picture that none refers to
    qp: int = 26
    # In P slices, the weights (weight, offset) of Y, U and V for each further place of the
    # reference picture in the list, see prediction.
    colors: tuple = ()


class HeaderBits(NamedTuple):
    """A slice header as it is written, without emulation prevention bytes."""

    bits: np.ndarray  # (n,) uint8 of 0 and 1, read-only
    frame_num: int  # the number of the first bit of frame_num
    order: int  # that of pic_order_cnt_lsb


@cache  # thousands of slices have the same
def header_bits(header: SliceHeader) -> HeaderBits:
    """Return a slice header's bits."""
    code, chained = _TYPES[header.type], header.poc_lsb is None
    is_ordered = header.type == "P" and not chained
    bits = BitWriter().ue(header.first_mb).ue(code).ue(0)
    # An order may be 0: the byte that it begins in needs a bit of 1, or escapes would hang on it.
    if is_ordered and (len(bits) + FRAME_NUM_BITS) % 8 == 0:
        bits = BitWriter().ue(header.first_mb).ue(code + _ALL).ue(0)
    frame_num = len(bits)
    # Of a chained stream it is written later; else all P pictures are the first after their card.
    bits.u(FRAME_NUM_BITS, int(is_ordered))
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
    found = bits.se(header.qp - INITIAL_QP).ue(_NO_DEBLOCKING).array()
    found.flags.writeable = False
    return HeaderBits(found, frame_num, order)


def _put_references(bits: BitWriter, further: int) -> None:
    """Append the number of references and their order (7.3.3, 7.3.3.1): one picture alone."""
    bits.u(1, int(further > 0))
    if not further:
        bits.u(1, 0)
        return
    bits.ue(further).u(1, 1).ue(0).ue(0)  # the picture before, by frame_num
    for _ in range(further):  # once around all numbers: the same picture again
        bits.ue(0).ue((1 << FRAME_NUM_BITS) - 1)
    bits.ue(3)


def _put_weights(bits: BitWriter, colors: tuple) -> None:
    """Append pred_weight_table (7.3.3.2)."""
    denominator = LOG2_DENOMINATOR if colors else 0
    bits.ue(denominator).ue(denominator).u(1, 0).u(1, 0)  # the first place's are the default
    for luma, *chroma in colors:
        for weights in ([luma], chroma):
            changed = any(weight != (1 << denominator, 0) for weight in weights)
            bits.u(1, int(changed))
            for weight, offset in weights if changed else ():
                bits.se(weight).se(offset)


def slice_nal(header: SliceHeader, data: np.ndarray) -> bytes:
    """Return a slice as a NAL unit: the header, `data`, trailing bits, escapes.

    data: the slice data, (n,) uint8 of 0 and 1.
    """
    rbsp = closed(np.concatenate([header_bits(header).bits, data]))
    return pack(header.ref_idc, SLICE if header.idr_pic_id is None else IDR, rbsp)
