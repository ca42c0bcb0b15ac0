"""Reading slice headers, x264's and goalreel's own, so that the data behind them can be taken.

Source: ITU-T H.264, 7.3.3. Headers are written in slices.
"""

from dataclasses import dataclass

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.h264.bits import BitReader
from goalreel.h264.nal import IDR, SLICE, Nal
from goalreel.h264.parameter_sets import PictureParameters, SequenceParameters
from goalreel.h264.slices import NO_DEBLOCKING, TYPES, SliceHeader

_MOST_ACTIVE = 32  # references, 7.4.3


@dataclass(frozen=True)
class ParsedHeader(SliceHeader):
    """A slice header that was read; disable_deblocking: disable_deblocking_filter_idc, 0 to 2."""

    disable_deblocking: int = 0


def slice_data(nal: Nal, sps: SequenceParameters, pps: PictureParameters) -> np.ndarray:
    """Return the slice data of a CAVLC slice, without header and trailing bits: (n,) uint8.

    Raises GoalreelError as read_header, and if the slice is in CABAC.
    """
    if pps.cabac:
        raise GoalreelError("slice data in CABAC; allowed: CAVLC")
    return data_from(nal, read_header(nal, sps, pps)[1])


def data_from(nal: Nal, start: int) -> np.ndarray:
    """Return the slice data of a CAVLC slice from bit `start` of its RBSP on: (n,) uint8."""
    reader = BitReader(nal.rbsp)
    reader.position = start
    return np.unpackbits(np.frombuffer(nal.rbsp, np.uint8), count=reader.end())[start:]


def read_header(
    nal: Nal, sps: SequenceParameters, pps: PictureParameters
) -> tuple[ParsedHeader, int]:
    """Return a slice's header, and the number of its slice data's first bit in the RBSP.

    In CABAC the data begin at the next whole byte. Raises GoalreelError if the unit is no slice, is
    broken, belongs to other parameter sets, is of a field, or of another type than I and P.
    """
    if nal.type not in (SLICE, IDR):
        raise GoalreelError(f"nal_unit_type {nal.type}; allowed: {SLICE} and {IDR}, slices")
    if not sps.frame_mbs_only or pps.sps_id != sps.id:
        raise GoalreelError(
            f"slices of SPS {sps.id}, frame_mbs_only_flag {sps.frame_mbs_only:d}, PPS {pps.id} of "
            f"SPS {pps.sps_id}; allowed: frames only, an SPS and a PPS of one another"
        )
    bits, is_idr = BitReader(nal.rbsp), nal.type == IDR
    first_mb = bits.ue(sps.macroblocks[0] * sps.macroblocks[1] - 1)
    code = bits.ue(9) % 5
    if code not in TYPES.values() or (is_idr and code == TYPES["P"]):
        raise GoalreelError(f"slice_type {code}, nal_unit_type {nal.type}; allowed: I, P; IDR: I")
    if (identity := bits.ue(255)) != pps.id:
        raise GoalreelError(f"a slice of PPS {identity}; allowed: {pps.id}, the one given")
    frame_num = bits.u(sps.frame_num_bits)
    idr_pic_id = bits.ue(65535) if is_idr else None
    poc_lsb = _read_order(bits, sps, pps)
    if pps.redundant_pictures:
        bits.ue(127)
    if code == TYPES["P"]:
        _read_references(bits, sps, pps)
    if nal.ref_idc:
        _read_marking(bits, is_idr)
    if pps.cabac and code == TYPES["P"]:
        bits.ue(2)  # cabac_init_idc
    qp = pps.initial_qp + bits.se()
    if not 0 <= qp <= 51:
        raise GoalreelError(f"slice qp {qp}; allowed: 0 to 51")
    filtered = bits.ue(2) if pps.deblocking_control else 0
    if pps.deblocking_control and filtered != NO_DEBLOCKING:
        bits.se(), bits.se()
    name = "P" if code == TYPES["P"] else "I"
    header = ParsedHeader(
        *(name, first_mb, frame_num, idr_pic_id, poc_lsb, nal.ref_idc, qp),
        disable_deblocking=filtered,
    )
    return header, bits.position


def _read_order(bits: BitReader, sps: SequenceParameters, pps: PictureParameters) -> int:
    """Read the picture order count; return pic_order_cnt_lsb, 0 where there is none."""
    lsb = bits.u(sps.poc_bits) if sps.poc_type == 0 else 0
    counts = 1 + pps.bottom_field_pic_order
    if sps.poc_type == 0:
        counts -= 1
    elif sps.poc_type == 2 or sps.poc_always_zero:
        counts = 0
    for _ in range(counts):
        bits.se()
    return lsb


def _read_references(bits: BitReader, sps: SequenceParameters, pps: PictureParameters) -> None:
    """Read a P slice's reference list, 7.3.3.1, and its weights, 7.3.3.2."""
    active = bits.ue(_MOST_ACTIVE - 1) + 1 if bits.flag() else pps.references
    if bits.flag():
        while bits.ue(3) != 3:
            bits.ue()
    if not pps.weighted_pred:
        return
    bits.ue(7)
    if sps.chroma_format:
        bits.ue(7)
    for _ in range(active):
        for values in (2, 4) if sps.chroma_format else (2,):
            if bits.flag():
                for _ in range(values):
                    bits.se()


def _read_marking(bits: BitReader, is_idr: bool) -> None:
    """Read dec_ref_pic_marking, 7.3.3.3."""
    if is_idr:
        bits.flag(), bits.flag()
    elif bits.flag():
        while operation := bits.ue(6):
            for _ in range({3: 2, 5: 0}.get(operation, 1)):
                bits.ue()
