"""Test assembled films with independent decoders.

Each frame is compared with the picture of the coded atlas, decoded separately over the title card,
and with the frame cache.
"""

import io
import json
from dataclasses import replace
from fractions import Fraction

import av
import numpy as np
import pandas as pd
import pytest
from assembling import (
    Assembled,
    assembled,
    byte_stream,
    decode_strictly,
    every_nth_state,
    nal_types,
    packets_of,
    psnr,
    rbsp_of,
    stream_of,
    units_of,
)
from conftest import CONTINUOUS, DISCRETE, simulated
from decoders import DECODERS, decode
from hypothesis import given, settings
from hypothesis import strategies as st

from goalreel.encoding.assembling.sample_parts import PartStore
from goalreel.encoding.encoder_selection import MOST_PICTURES
from goalreel.encoding.yuv import Yuv420p
from goalreel.h264.bits import IDR, PPS, SLICE, SPS, pack
from goalreel.h264.inter import skip_run
from goalreel.h264.slices import SliceHeader, header_bits, slice_nal
from goalreel.mp4.reader import read_index
from goalreel.rendering.layers import NOTHING

SIZE = (600, 400)
CASES = {
    "plain": {},
    "no caption": {"caption": ""},
    "HUD": {"hud": True},
    "HUD, no caption": {"hud": True, "caption": ""},
}


@pytest.fixture(scope="module")
def films(tmp_path_factory) -> dict[str, Assembled]:
    """Return films of three episodes, one per kind of overlay, with every ninth state."""
    folder, thin = tmp_path_factory.mktemp("films"), every_nth_state(simulated(), 9)
    return {
        name: assembled(folder / f"{number}.mp4", DISCRETE, thin, **options)
        for number, (name, options) in enumerate(CASES.items())
    }


def with_order(unit: bytes, header: SliceHeader, order: int) -> bytes:
    """Return a P slice with this pic_order_cnt_lsb, written bit by bit."""
    bits, place = np.unpackbits(np.frombuffer(rbsp_of(unit), np.uint8)), header_bits(header).order
    bits[place : place + 16] = [int(bit) for bit in format(order, "016b")]
    return pack(unit[0] >> 5, type_of(unit), np.packbits(bits).tobytes())


def type_of(unit: bytes) -> int:
    """Return nal_unit_type of a NAL unit."""
    return unit[0] & 31


def access_units(film: Assembled) -> list[list[bytes]]:
    """Return the NAL units of each sample without parameter sets."""
    units = [u for u in units_of(byte_stream(film.path)) if type_of(u) in (SLICE, IDR)]
    # A picture begins with first_mb_in_slice 0, a bit of 1.
    starts = [number for number, unit in enumerate(units) if unit[1] & 0x80]
    ends = [*starts[1:], len(units)]
    return [units[start:end] for start, end in zip(starts, ends, strict=True)]


def stream_of_pairs(film: Assembled) -> tuple[bytes, list[int]]:
    """Return a stream of pairs of a title card and one picture, and the pair of each frame.

    The picture is the slice of the coded atlas. Only HUD slices come from the film.
    """
    layers = {layer.name: layer for layer in film.cache.layers}
    car, coded_atlas = layers["car"], film.coded_atlas
    digests, samples = car.patches.digests(), access_units(film)
    units, pairs, which = [], {}, []
    whole = coded_atlas.planes[0].size // 256
    for episode in range(len(film.cache.offsets) - 1):
        frames = film.cache.episode(episode)
        card = samples[frames[0]]
        for frame in frames:
            index = int(car.index[frame])
            key = (episode, index, *(layers[name].index[frame] for name in list(layers)[2:]))
            if key not in pairs:
                pairs[key] = len(pairs)
                units += card
                if index == NOTHING:  # the card continues
                    units.append(slice_nal(SliceHeader("P", 0, poc_lsb=2), skip_run(whole)))
                else:
                    slice_ = coded_atlas.slices[digests[index]][4:]
                    units.append(with_order(slice_, coded_atlas.header, 2))
                    for unit in samples[frame][1:]:  # a HUD slice, with a header of another length
                        first = first_macroblock(unit)
                        assert first >= coded_atlas.region.size
                        units.append(with_order(unit, SliceHeader("P", first), 2))
            which.append(pairs[key])
    return stream_of(film.size, units), which


def first_macroblock(unit: bytes) -> int:
    """Return first_mb_in_slice, the ue(v) at the start of a slice."""
    bits = "".join(format(byte, "08b") for byte in rbsp_of(unit)[:5])
    zeros = bits.index("1")
    return int(bits[zeros : 2 * zeros + 1], 2) - 1


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("decoder", DECODERS)
def test_frame_equals_picture_decoded_separately(films, name, decoder):
    film = films[name]
    stream, which = stream_of_pairs(film)
    streams = stream, byte_stream(film.path)
    pairs, shown = (decode(decoder, data, film.size) for data in streams)
    assert len(shown) == len(film.cache) == len(which)
    assert len(pairs) == 2 * len(set(which))
    starts = set(film.cache.offsets[:-1].tolist())
    for frame, pair in enumerate(which):
        # The first frame is the IDR picture itself.
        expected = pairs[2 * pair + (frame not in starts)]
        assert np.array_equal(shown[frame], expected), frame


@pytest.mark.parametrize("name", CASES)
def test_film_has_each_frame_once_and_keyframe_per_episode(films, name):
    film = films[name]
    with av.open(str(film.path)) as container:
        (stream,) = container.streams.video
        packets = [packet for packet in container.demux(stream) if packet.size]
        assert stream.frames == len(film.cache) == len(packets)
        assert (stream.average_rate, stream.guessed_rate, stream.base_rate) == (30, 30, 30)
        assert stream.duration * stream.time_base == Fraction(len(film.cache), 30)
        context = stream.codec_context
        assert (context.profile, context.has_b_frames) == ("Main", False)
        assert (context.color_range, context.colorspace, context.color_trc) == (1, 1, 1)
        assert context.color_primaries == 1
        assert Fraction(container.duration, av.time_base) == pytest.approx(len(film.cache) / 30)
    keys = [frame for frame, packet in enumerate(packets) if packet.is_keyframe]
    assert keys == film.cache.offsets[:-1].tolist()
    units = units_of(byte_stream(film.path))
    idrs = [frame for frame, part in enumerate(access_units(film)) if type_of(part[0]) == IDR]
    assert idrs == keys and set(map(type_of, units)) == {SLICE, IDR, SPS, PPS}


@pytest.mark.parametrize(("env", "hud"), [(DISCRETE, False), (CONTINUOUS, True)])
def test_frames_are_close_to_frame_cache(env, hud, tmp_path):
    film = assembled(tmp_path / "f.mp4", env, simulated(env, range(3)), hud=hud)
    shown = decode_strictly(byte_stream(film.path))
    values = psnr(shown, film.cache)
    assert shown.shape[1:] == (film.size[1] * 3 // 2, film.size[0])
    assert values.min() >= 49 and values.mean() >= 50
    for picture, frame in zip(shown, Yuv420p(film.cache).frames(), strict=True):
        chroma = picture[film.size[1] :].astype(int) - frame[film.size[1] :]
        assert np.square(chroma).mean() < 255**2 / 10**4, "40 dB"


def test_higher_quality_has_more_bytes_and_psnr(tmp_path):
    thin = every_nth_state(simulated(reaches=range(2)), 13)
    sizes, means = [], []
    for quality in ("small", "balanced", "best"):
        path = tmp_path / f"{quality}.mp4"
        film = assembled(path, DISCRETE, thin, quality, hud=True)
        sizes.append(read_index(path).sizes.sum())
        means.append(psnr(decode_strictly(byte_stream(path)), film.cache).mean())
    assert sizes == sorted(sizes) and means == sorted(means)
    assert means[1] - means[0] > 1 < means[2] - means[1], means


@settings(deadline=None, max_examples=200)
@given(
    st.binary(min_size=1, max_size=40),
    st.integers(0, 3000),
    st.integers(0, 51),
    st.integers(0, MOST_PICTURES - 1),
)
def test_pic_order_cnt_can_be_patched_into_any_slice(data, first, qp, count):
    """The patched bytes equal those of a slice written with this order."""
    header, store = SliceHeader("P", first, qp=qp), PartStore()
    bits = np.unpackbits(np.frombuffer(data, np.uint8))
    part = store.add_slice(header, bits)
    stream = io.BytesIO()
    sizes = store.write(stream, np.array([[part]]), np.array([count]))
    expected = slice_nal(replace(header, poc_lsb=2 * count), bits)
    assert stream.getvalue() == len(expected).to_bytes(4, "big") + expected
    assert sizes.tolist() == [len(stream.getvalue())]


def test_film_has_parameter_sets_once_and_subtitles(filmed):
    results = filmed.folder / "results"
    table = pd.read_csv(results / "episodes.csv")
    index = read_index(results / "film.mp4")
    starts, resets = table["first_frame"] - table["card_frames"], table["first_frame"] - 1
    assert list(index.keyframes) == sorted([*starts, *resets]), "title cards, and the empty track"
    with av.open(str(results / "film.mp4")) as container:
        (subtitles,) = container.streams.subtitles
        assert len([p for p in container.demux(subtitles) if p.size > 2]) == 8
        assert json.loads(container.metadata["comment"])["stage"] == "concat"
    # Parameter sets are in the sample entry. FFmpeg puts them before each IDR picture.
    for packet in packets_of(results / "film.mp4"):
        assert nal_types(bytes(packet)) <= {SLICE, IDR}
    assert len(decode_strictly(byte_stream(results / "film.mp4"))) == index.frames
