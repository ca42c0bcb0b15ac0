"""Extract the slice data of the I slices that x264 codes in Baseline profile.

`read_slices` also checks that x264 used the requested settings, since slice data coded with others
would not fit goalreel's own slice headers.
Source: Rec. ITU-T H.264, 7.3.2.1, 7.3.2.2, 7.3.3 and Annex B.
"""

import re

import numpy as np

from goalreel.h264.bits import IDR, PPS, SPS, BitStrings, BitWriter, to_rbsp, ue_codewords

# The header of a picture's first slice.
_HEADER = re.compile(
    "1(011|0001000)1"  # first_mb_in_slice 0, slice_type I (Table 7-6), pic_parameter_set_id 0
    "[01]{4}(1|010)00"  # frame_num, idr_pic_id 0 or 1, dec_ref_pic_marking
    "1010"  # slice_qp_delta 0, disable_deblocking_filter_idc 1
)
_MAX_HEADER_BYTES = 3


def read_slices(stream: bytes, size: tuple[int, int], qp: int) -> BitStrings:
    """Return the slice data of all slices of an Annex B byte stream, in order, without escapes.

    All slices have the same number of macroblock rows and the same `qp`. `size` is the (width,
    height) of the pictures, multiples of 16.
    """
    data, starts, ends = _unescaped(stream)
    kinds = data[starts] & 31
    # x264 repeats the same parameter sets before each picture.
    profile, _, _, follows = data[starts[kinds == SPS][0] + 1 :][:4].tolist()
    # Baseline. Then seq_parameter_set_id 0, log2_max_frame_num_minus4 0, pic_order_cnt_type 2.
    _expect("a sequence parameter set", (profile, follows >> 3), (66, 0b1_1_011))
    first, end = starts[kinds == PPS][0], ends[kinds == PPS][0]
    # Both ids, CAVLC, no bottom field order, one slice group, one active reference per list.
    bits = BitWriter().ue(0).ue(0).u(2, 0).ue(0).ue(0).ue(0)
    # No weights, QP and QS, no chroma_qp_index_offset, deblocking control (first of three flags).
    bits.u(3, 0).se(qp - 26).se(0).se(0).u(3, 4)
    _expect("a picture parameter set", data[first + 1 : end].tobytes(), to_rbsp(bits.to_array()))
    starts, ends = starts[kinds == IDR], ends[kinds == IDR]
    firsts = starts[data[starts + 1] >= 0x80]  # first_mb_in_slice is 0: a bit of 1
    headers = []
    for first in firsts.tolist():
        bits = np.unpackbits(data[first + 1 : first + 1 + _MAX_HEADER_BYTES]).tolist()
        header = _HEADER.match("".join(map(str, bits)))
        _expect("a slice header", header is not None, True)
        headers.append(header.end())
    slices = len(starts) // len(firsts)
    assert len(starts) == len(firsts) * slices, len(starts)
    # The slice headers of a picture differ only in first_mb_in_slice, a ue(v) at their start.
    _, address = ue_codewords(np.arange(slices) * (size[0] * size[1] // 256 // slices))
    headers = np.add.outer(np.array(headers) - 1, address).ravel()
    last = data[ends - 1].astype(np.int64)
    trailing = np.log2(last & -last).astype(np.int64) + 1  # rbsp_trailing_bits
    begin = 8 * (starts + 1) + headers
    return BitStrings(data, begin, 8 * ends - trailing - begin)


def _unescaped(stream: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a byte stream without escapes, and the bounds of its NAL units, (n,) each."""
    data = np.frombuffer(stream, np.uint8)
    zero = data == 0
    after = data[2:]  # the byte after two zeros
    codes, escapes = (np.flatnonzero(zero[:-2] & zero[1:-1] & (after == n)) for n in (1, 3))
    ends = np.append(codes[1:], len(data))
    starts, ends = codes + 3, ends - zero[ends - 1]  # a start code may have a leading zero byte
    data = np.delete(data, escapes + 2)
    return data, *(bounds - np.searchsorted(escapes + 2, bounds) for bounds in (starts, ends))


def _expect(element: str, found: object, expected: object) -> None:
    assert found == expected, f"x264 coded {element} {found}, not {expected}; please report this"
