"""Slices by x264 put together to pictures of ours, told by decoders that are not ours."""

import numpy as np
import pytest
from assembling import stream_of
from decoders import DECODERS, decode_or_skip

from goalreel.encoding.assembling.intra_slices import code_intra, decode
from goalreel.encoding.yuv import joined, pad16, planes, rows
from goalreel.h264.slices import SliceHeader, slice_nal


def pictures(count, size):
    """Return pictures with edges, noise and flat parts, yuv420p."""
    rng = np.random.default_rng(3)
    height, width = size[1], size[0]
    made = []
    for i in range(count):
        luma = np.full((height, width), 235, np.uint8)
        luma[i % 8 :: 9, :] = 16
        luma[:, width // 2 :] = rng.integers(0, 256, (height, width - width // 2))
        blue, red = rng.integers(100, 150, (2, height // 2, width // 2), dtype=np.uint8)
        made.append(joined(luma, blue, red))
    return made


def idr(number, *parts):
    """Return an IDR picture of slices: the data, quantiser and first macroblock of each."""
    return [
        slice_nal(SliceHeader("I", first, idr_pic_id=number % 2, ref_idc=3, qp=qp), data)
        for data, qp, first in parts
    ]


def alone(data, qp, size):
    """Return the picture of one slice, decoded alone."""
    (picture,) = decode(stream_of(size, idr(0, (data, qp, 0))), size)
    return picture


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("size", [(90, 60), (96, 64), (82, 50)])
def test_two_slices_of_one_picture_decode_to_both_parts(decoder, size):
    padded = [pad16(picture) for picture in pictures(3, size)]
    captions = code_intra([rows(picture, 0, 32) for picture in padded], (96, 32), 24)
    (below,) = code_intra([rows(padded[0], 32, 64)], (96, 32), 19, thorough=True)
    units = [
        unit for i, part in enumerate(captions) for unit in idr(i, (part, 24, 0), (below, 19, 12))
    ]
    stream = stream_of(size, units)
    shown = decode_or_skip(decoder, stream, size)
    assert len(shown) == len(captions)
    bottom = planes(alone(below, 19, (96, 32)))
    for picture, caption in zip(shown, captions, strict=True):
        top = planes(alone(caption, 24, (96, 32)))
        whole = [np.concatenate(pair) for pair in zip(top, bottom, strict=True)]
        height, width = size[1], size[0]
        cropped = [whole[0][:height, :width]]
        cropped += [plane[: height // 2, : width // 2] for plane in whole[1:]]
        assert np.array_equal(picture, joined(*cropped))


@pytest.mark.parametrize("thorough", [False, True])
@pytest.mark.parametrize("qp", [1, 10, 20, 51])
def test_slices_hold_no_macroblock_that_depends_on_its_place_in_the_bytes(qp, thorough):
    """I_PCM is what x264 likes best for noise; headers of other lengths would move it."""
    rng = np.random.default_rng(1)
    noise = rng.integers(0, 256, (2, 48, 64), dtype=np.uint8)
    noise[1] = rng.choice([0, 255], (48, 64))
    for data in code_intra(noise, (64, 32), qp, thorough):
        shown = []
        for number in (0, 1, 200, 40000):  # lengths that are all different modulo 8
            header = SliceHeader("I", 0, idr_pic_id=number, ref_idc=3, qp=qp)
            shown.append(decode(stream_of((64, 32), [slice_nal(header, data)]), (64, 32)))
        assert all(np.array_equal(picture, shown[0]) for picture in shown)
