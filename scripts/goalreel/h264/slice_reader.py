"""x264's I slices in Baseline profile, read so that the data of each can be taken out of it.

x264 must have coded what goalreel asks it for: anything else would fit no other place. Source:
ITU-T H.264, 7.3.2.1, 7.3.2.2, 7.3.3 and Annex B.
"""

import numpy as np

from goalreel.h264.bits import BitReader, BitStrings, BitWriter, closed, ue_codewords
from goalreel.h264.nal import IDR, PPS, SPS

# profile_idc: CAVLC, 8 bits, 4:2:0; then the set's number, four bits of frame_num, no order count.
_SEQUENCE = 66, 0, 0, 2
_I = 2  # slice_type modulo 5, Table 7-6
_MAX_HEADER_BYTES = 64  # bytes of a parameter set or a slice that are read, more than they take


def read_slices(stream: bytes, size: tuple[int, int], qp: int) -> BitStrings:
    """Return the data of all slices of a stream, in order, without escapes.

    Args:
        stream: Annex B. The slices of a picture are of equally many rows of macroblocks.
        size: (width, height) of the pictures, multiples of 16.
        qp: the quantizer of all slices.
    """
    data, starts, ends = _unescaped(stream)
    kinds = data[starts] & 31

    def reader(start: int) -> BitReader:
        return BitReader(data[start + 1 : start + _MAX_HEADER_BYTES].tobytes())

    # x264 repeats the parameter sets, always the same, before each picture.
    bits = reader(starts[kinds == SPS][0])
    profile, _ = bits.u(8), bits.u(16)
    _expect("a sequence", (profile, bits.ue(), bits.ue(), bits.ue()), _SEQUENCE)
    first, end = starts[kinds == PPS][0], ends[kinds == PPS][0]
    _expect("a picture", data[first + 1 : end].tobytes(), _picture_parameters(qp))
    starts, ends = starts[kinds == IDR], ends[kinds == IDR]
    firsts = starts[data[starts + 1] >= 0x80]  # first_mb_in_slice of 0 is a bit of 1
    headers = []
    for first in firsts.tolist():
        bits = reader(first)
        kind = bits.ue(), bits.ue() % 5, bits.ue()
        bits.u(4), bits.ue(), bits.u(2)  # frame_num, idr_pic_id, dec_ref_pic_marking
        # Then slice_qp_delta, and disable_deblocking_filter_idc of 1.
        _expect("slices", (*kind, bits.se(), bits.ue()), (0, _I, 0, 0, 1))
        headers.append(bits.position)
    slices = len(starts) // len(firsts)
    assert len(starts) == len(firsts) * slices, len(starts)
    # The headers of a picture differ in first_mb_in_slice alone, ue(v) at the beginning.
    _, address = ue_codewords(np.arange(slices) * (size[0] * size[1] // 256 // slices))
    headers = np.add.outer(np.array(headers) - 1, address).ravel()
    last = data[ends - 1].astype(np.int64)
    trailing = np.log2(last & -last).astype(np.int64) + 1  # rbsp_trailing_bits
    begin = 8 * (starts + 1) + headers
    return BitStrings(data, begin, 8 * ends - trailing - begin)


def _unescaped(stream: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a stream without escapes, and where its NAL units begin and end, (n,) each."""
    data = np.frombuffer(stream, np.uint8)
    zero = data == 0
    after = data[2:]  # two zeros
    codes, escapes = (np.flatnonzero(zero[:-2] & zero[1:-1] & (after == n)) for n in (1, 3))
    ends = np.append(codes[1:], len(data))
    starts, ends = codes + 3, ends - zero[ends - 1]  # a start code may have a zero more
    data = np.delete(data, escapes + 2)
    return data, *(bounds - np.searchsorted(escapes + 2, bounds) for bounds in (starts, ends))


def _picture_parameters(qp: int) -> bytes:
    # Both ids; CAVLC, no bottom field's order; one slice group, one reference of each list.
    bits = BitWriter().ue(0).ue(0).u(2, 0).ue(0).ue(0).ue(0)
    # No weights; quantizers, no chroma_qp_index_offset; deblocking control alone of three flags.
    return closed(bits.u(3, 0).se(qp - 26).se(0).se(0).u(3, 4).array())


def _expect(what: str, found: object, wanted: object) -> None:
    assert found == wanted, f"x264 coded {what} of {found} and not {wanted}; please report this"
