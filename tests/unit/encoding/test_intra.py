"""Test that x264 slice data decode alike after slice headers of any length."""

import numpy as np
import pytest
from assembling import decode_strictly, stream_of

from goalreel.encoding.assembling.intra_slices import code_strips
from goalreel.encoding.yuv import planes
from goalreel.h264.slices import SliceHeader, slice_nal


@pytest.mark.parametrize("thorough", [False, True])
@pytest.mark.parametrize("qp", [1, 10, 20, 51])
def test_slices_hold_no_position_dependent_macroblock(qp, thorough):
    """x264 prefers I_PCM for noise, which headers of other lengths would shift."""
    rng = np.random.default_rng(1)
    noise = rng.integers(0, 256, (2, 48, 64), dtype=np.uint8)
    noise[1] = rng.choice([0, 255], (48, 64))
    strips = tuple(map(np.stack, zip(*map(planes, noise), strict=True)))
    for data in code_strips(strips, qp, thorough).unpack():
        shown = []
        for number in (0, 1, 200, 40000):  # header lengths that differ modulo 8
            header = SliceHeader("I", 0, idr_pic_id=number, ref_idc=3, qp=qp)
            shown.append(decode_strictly(stream_of((64, 32), [slice_nal(header, data)])))
        assert all(np.array_equal(picture, shown[0]) for picture in shown)
