"""Test that P slices of patches decode correctly after any other pictures.

FFmpeg decodes them (through PyAV) and fails at any error or warning.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from assembling import decode_strictly, stream_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from goalreel.encoding.assembling.intra_slices import code_strips
from goalreel.encoding.yuv import planes
from goalreel.h264.inter import code_patches, skip_run
from goalreel.h264.macroblocks import Region
from goalreel.h264.prediction import plain_color
from goalreel.h264.slices import SliceHeader, slice_nal

WIDTH, HEIGHT = SIZE = (112, 80)
COLUMNS, ROWS = 7, 5
WHOLE = Region(0, 0, ROWS, COLUMNS, COLUMNS)
LIGHT, DARK = (235, 128, 128), (24, 120, 134)


@cache
def background(name: str) -> np.ndarray:
    """Return a picture in yuv420p: plain light, plain dark, or with all kinds of samples."""
    picture = np.empty((HEIGHT * 3 // 2, WIDTH), np.uint8)
    luma, blue, red = planes(picture)
    for plane, sample in zip((luma, blue, red), LIGHT if name == "light" else DARK, strict=True):
        plane[:] = sample
    if name == "mixed":
        rng = np.random.default_rng(5)
        luma[::7], luma[:, 60:] = 200, rng.integers(0, 256, (HEIGHT, WIDTH - 60))
        blue[:], red[:] = rng.integers(90, 160, (2, HEIGHT // 2, WIDTH // 2))
    return picture


@cache
def idr(name: str) -> bytes:
    """Return a background as the only slice of an IDR picture."""
    strips = tuple(plane[None] for plane in planes(background(name)))
    (data,) = code_strips(strips, 16).unpack()
    return slice_nal(SliceHeader("I", 0, idr_pic_id=1, ref_idc=3, qp=16), data)


@cache
def decoded_background(name: str) -> np.ndarray:
    """Return a decoded background."""
    (picture,) = decode_strictly(stream_of(SIZE, [idr(name)]))
    return picture


def patch(rng: np.random.Generator, kind: str, box: Sequence[int], color: Sequence[int]) -> list:
    """Return a patch of noise, of one color, or of strokes like those of letters."""
    top, left, height, width = box
    full = (slice(top, top + height), slice(left, left + width))
    half = tuple(slice(s.start // 2, s.stop // 2) for s in full)
    made = []
    for place, sample in zip((full, half, half), color, strict=True):
        shape = tuple(s.stop - s.start for s in place)
        samples = np.full(shape, sample, np.uint8)
        if kind == "noise":
            samples = rng.integers(0, 256, shape, dtype=np.uint8)
        elif kind == "text" and place is full:
            samples[rng.random(shape) < 0.3] = 16
            samples[:, ::5] = 16
        made.append((place, samples))
    return made


@st.composite
def boxes(draw) -> tuple[int, int, int, int]:
    """Return a box with even coordinates anywhere in the picture."""
    top = 2 * draw(st.integers(0, HEIGHT // 2 - 1))
    left = 2 * draw(st.integers(0, WIDTH // 2 - 1))
    height = 2 * draw(st.integers(1, (HEIGHT - top) // 2))
    width = 2 * draw(st.integers(1, (WIDTH - left) // 2))
    return top, left, height, width


@st.composite
def regions(draw) -> Region:
    """Return the whole picture, several rows, or part of a row."""
    kind = draw(st.sampled_from(["whole", "rows", "part"]))
    if kind == "whole":
        return WHOLE
    top = draw(st.integers(0, ROWS - 1))
    if kind == "rows":
        return Region(top, 0, draw(st.integers(1, ROWS - top)), COLUMNS, COLUMNS)
    left = draw(st.integers(0, COLUMNS - 1))
    return Region(top, left, 1, draw(st.integers(1, COLUMNS - left)), COLUMNS)


COLOR = st.tuples(*[st.integers(0, 255)] * 3)
KINDS = st.sampled_from(["noise", "flat", "text"])


@st.composite
def cases(draw) -> dict:
    """Return a background, patches, a region, a QP and plain colors."""
    name = draw(st.sampled_from(["light", "dark", "mixed"]))
    count = draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    colors = draw(st.lists(COLOR, max_size=3))
    palette = st.sampled_from(colors) if colors else COLOR
    patches = [patch(rng, draw(KINDS), draw(boxes()), draw(palette)) for _ in range(count)]
    case = {"name": name, "patches": patches, "region": draw(regions())}
    return case | {"qp": draw(st.integers(10, 51)), "colors": colors}


def weights(name: str, colors: Sequence) -> tuple:
    """Return the weights that turn a background into colors."""
    under = LIGHT if name == "light" else DARK
    return tuple(plain_color(color, under) for color in colors)


def slices(name: str, patches, region: Region, qp: int, colors=()) -> list[np.ndarray]:
    """Return the slice data of patches over a decoded background."""
    coded, real = planes(decoded_background(name)), planes(background(name))
    return code_patches(coded, real, patches, region, qp, colors)


def picture(data: np.ndarray, place: int, region: Region, qp: int, colors=()) -> list[bytes]:
    """Return the slices of a picture: `data`, with skipped macroblocks around its region."""
    end, order = region.first + region.size, {"poc_lsb": 2 * place}
    header = SliceHeader("P", region.first, qp=qp, colors=colors, **order)
    units = [slice_nal(header, data)]
    if region.first:
        header = SliceHeader("P", 0, **order)
        units.insert(0, slice_nal(header, skip_run(region.first)))
    if end < WHOLE.size:
        units.append(slice_nal(SliceHeader("P", end, **order), skip_run(WHOLE.size - end)))
    return units


def touched(patch: Sequence, region: Region) -> np.ndarray:
    """Return a mask of the macroblocks of a region that a patch touches, (H, W) bool."""
    (rows, columns), _ = patch[0]
    mask = np.zeros((ROWS, COLUMNS), bool)
    mask[rows.start // 16 : -(-rows.stop // 16), columns.start // 16 : -(-columns.stop // 16)] = 1
    numbers = np.arange(WHOLE.size).reshape(ROWS, COLUMNS)
    mask &= (numbers >= region.first) & (numbers < region.first + region.size)
    return mask.repeat(16, axis=0).repeat(16, axis=1)


QUICK = settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))


def stream_in_turn(case: dict) -> bytes:
    """Return a stream of the background of a case and its patches, one picture each."""
    name, region, qp = case["name"], case["region"], case["qp"]
    colors, units = weights(name, case["colors"]), [idr(name)]
    for place, data in enumerate(slices(name, case["patches"], region, qp, colors), start=1):
        units += picture(data, place, region, qp, colors)
    return stream_of(SIZE, units)


@QUICK
@given(cases())
def test_patch_decodes_and_keeps_other_macroblocks(case):
    name, patches, region = case["name"], case["patches"], case["region"]
    decoded_pictures = decode_strictly(stream_in_turn(case))
    assert len(decoded_pictures) == 1 + len(patches)
    for one, decoded in zip(patches, decoded_pictures[1:], strict=True):
        inside = touched(one, region)
        for plane, track in zip(planes(decoded), planes(decoded_background(name)), strict=True):
            step = HEIGHT // len(plane)
            assert np.array_equal(plane[~inside[::step, ::step]], track[~inside[::step, ::step]])


def psnr_of_patch(patches: Sequence, name: str, qp: int, colors: Sequence = ()) -> float:
    """Return the PSNR of the decoded first patch in dB, over all its samples."""
    (data, *_) = slices(name, patches, WHOLE, qp, colors)
    units = [idr(name), *picture(data, 1, WHOLE, qp, colors)]
    decoded = planes(decode_strictly(stream_of(SIZE, units))[1])
    errors = [
        (plane[place].astype(int) - samples).ravel()
        for plane, (place, samples) in zip(decoded, patches[0], strict=True)
    ]
    return 10 * np.log10(255**2 / max(np.square(np.concatenate(errors)).mean(), 1e-9))


@pytest.mark.parametrize("name", ["light", "dark"])
@pytest.mark.parametrize("color", [(255, 255, 0), (235, 128, 128), (180, 40, 220), (16, 128, 128)])
def test_plain_color_takes_fewer_bits_than_levels(name, color):
    """A color can be lighter than 127, the largest offset."""
    flat = [patch(np.random.default_rng(0), "flat", (16, 16, 32, 48), color)]
    colors = weights(name, [color])
    (with_color,) = slices(name, flat, WHOLE, 30, colors)
    (without,) = slices(name, flat, WHOLE, 30)
    assert name == "light" and color == LIGHT or len(with_color) < len(without)
    assert psnr_of_patch(flat, name, 30, colors) > 38
