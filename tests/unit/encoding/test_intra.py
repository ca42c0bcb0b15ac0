"""Slices by x264 put together to pictures of ours, told by decoders that are not ours."""

import io

import av
import numpy as np
import pytest
from openh264 import OPENH264, openh264_or_skip

from goalreel.encoding.assembling.intra_slices import code_intra, decode
from goalreel.encoding.yuv import joined, pad16, planes, rows
from goalreel.errors import GoalreelError
from goalreel.h264.bits import BitWriter
from goalreel.h264.nal import annex_b
from goalreel.h264.parameter_sets import Stream, pps, sps
from goalreel.h264.slices import SliceHeader, slice_nal

SIZE = (90, 60)  # 6 x 4 macroblocks; 12 of them above


def pyav(stream):
    """Return a stream's pictures as PyAV decodes them."""
    with av.open(io.BytesIO(stream), format="h264") as container:
        return np.stack([frame.to_ndarray() for frame in container.decode(video=0)])


def pictures(count, size=SIZE):
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


def idr(number, *parts, columns=6):
    """Return an IDR picture of slices, one below the other."""
    first, units = 0, []
    for part in parts:
        header = SliceHeader("I", first, idr_pic_id=number % 2, ref_idc=3, qp=part.qp)
        units.append(slice_nal(header, part.data))
        first += part.macroblocks
    return units


def stream_of(size, *units):
    """Return a stream of our parameter sets and slices."""
    return annex_b([sps(Stream(size, 30)), pps(), *units])


def alone(part, size):
    """Return the picture of one slice, decoded alone."""
    (picture,) = decode(stream_of(size, *idr(0, part)), size)
    return picture


@pytest.mark.parametrize("decoder", ["ffmpeg", "PyAV", OPENH264])
@pytest.mark.parametrize("size", [SIZE, (96, 64), (82, 50)])
def test_two_slices_of_one_picture_decode_to_both_parts(decoder, size):
    padded = [pad16(picture) for picture in pictures(3, size)]
    captions = code_intra([rows(picture, 0, 32) for picture in padded], (96, 32), 24)
    (below,) = code_intra([rows(padded[0], 32, 64)], (96, 32), 19, thorough=True)
    units = [unit for i, part in enumerate(captions) for unit in idr(i, part, below)]
    stream = stream_of(size, *units)
    decoders = {"ffmpeg": decode, "PyAV": lambda s, _: pyav(s), "OpenH264": openh264_or_skip}
    shown = decoders[decoder](stream, size)
    assert len(shown) == len(captions)
    bottom = planes(alone(below, (96, 32)))
    for picture, caption in zip(shown, captions, strict=True):
        top = planes(alone(caption, (96, 32)))
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
    for part in code_intra(noise, (64, 32), qp, thorough):
        shown = []
        for number in (0, 1, 200, 40000):  # lengths that are all different modulo 8
            header = SliceHeader("I", 0, idr_pic_id=number, ref_idc=3, qp=qp)
            shown.append(decode(stream_of((64, 32), slice_nal(header, part.data)), (64, 32)))
        assert all(np.array_equal(picture, shown[0]) for picture in shown)


@pytest.mark.parametrize("thorough", [False, True])
def test_a_picture_decodes_close_to_what_was_coded(thorough):
    padded = [pad16(picture) for picture in pictures(4)]
    parts = code_intra(padded, (96, 64), 1, thorough)
    assert [part.qp for part in parts] == [1] * 4
    assert [part.macroblocks for part in parts] == [24] * 4
    for picture, part in zip(padded, parts, strict=True):
        assert np.abs(alone(part, (96, 64)).astype(int) - picture).max() <= 1


def test_a_pictures_slice_does_not_depend_on_the_others():
    padded = [pad16(picture) for picture in pictures(4)]
    together = code_intra(padded, (96, 64), 22)
    for picture, part in zip(padded, together, strict=True):
        (single,) = code_intra([picture], (96, 64), 22)
        assert np.array_equal(part.data, single.data)


@pytest.mark.parametrize("decoder", ["ffmpeg", OPENH264])
def test_p_slices_are_shown_as_meant(decoder):
    """A P slice whose macroblocks are all skipped shows the first picture in its list again."""
    padded = [pad16(picture) for picture in pictures(2)]
    first, second = code_intra(padded, (96, 64), 20)
    skipped = BitWriter().ue(24).array()
    units = [
        *idr(0, first),
        slice_nal(SliceHeader("P", 0, frame_num=1, poc_lsb=2), skipped),
        slice_nal(SliceHeader("I", 0, 1, None, 4, qp=20), second.data),
        slice_nal(SliceHeader("P", 0, frame_num=1, poc_lsb=6, qp=51), skipped),
    ]
    stream = stream_of((96, 64), *units)
    shown = (decode if decoder == "ffmpeg" else openh264_or_skip)(stream, (96, 64))
    one, two = alone(first, (96, 64)), alone(second, (96, 64))
    assert not np.array_equal(one, two)
    assert len(shown) == 4
    for picture, wanted in zip(shown, [one, one, two, one], strict=True):
        assert np.array_equal(picture, wanted)


def test_padding_repeats_the_last_row_and_column():
    (picture,) = pictures(1)
    padded = pad16(picture)
    assert padded.shape == (96, 96)
    for plane, wide in zip(planes(picture), planes(padded), strict=True):
        down, across = np.minimum(np.indices(wide.shape), np.array(plane.shape)[:, None, None] - 1)
        assert np.array_equal(wide, plane[down, across])
    assert np.array_equal(pad16(padded), padded)


def test_no_pictures_make_no_slices():
    assert code_intra([], (64, 32), 20) == []


def test_what_cannot_be_coded_is_refused():
    grey = np.full((48, 64), 128, np.uint8)
    for size, qp in [((60, 32), 20), ((64, 0), 20), ((64, 32), 0), ((64, 32), 52)]:
        with pytest.raises(GoalreelError, match="allowed"):
            code_intra([grey], size, qp)
    for wrong in [grey[:-1], grey.astype(np.int64), grey[:, :-1]]:
        with pytest.raises(GoalreelError, match="picture 1"):
            code_intra([grey, wrong], (64, 32), 20)


def test_another_coding_than_was_asked_for_is_refused(monkeypatch):
    grey = np.full((48, 64), 128, np.uint8)
    settings = {
        "disable_deblocking_filter_idc": "no-deblock=0",
        "chroma_qp_index_offset": "chroma-qp-offset=2",
        "at qp": "ipratio=2",
        "first_mb_in_slice": "slices=2",
    }
    for name, setting in settings.items():
        monkeypatch.setattr("goalreel.encoding.x264._FAST", f"psy=0:{setting}")
        with pytest.raises(GoalreelError, match=name):
            code_intra([grey], (64, 32), 20)


def test_a_broken_stream_is_refused():
    (part,) = code_intra([pad16(picture) for picture in pictures(1)], (96, 64), 20)
    stream = stream_of((96, 64), *idr(0, part))
    with pytest.raises(GoalreelError):
        decode(stream[: len(stream) // 2], (96, 64))
    with pytest.raises(GoalreelError, match="bytes"):
        decode(stream, (96, 62))
