"""Independent decoders find exactly the right frames in assembled films, in order.

The references are the coded atlas's frame, decoded over only its episode's title card, and the
frame cache.
"""

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
    nal_types,
    packets_of,
    psnr,
    rbsp_of,
    stream_of,
    strictly,
    thinned,
    units_of,
)
from conftest import CONTINUOUS, DISCRETE, STYLES, simulated
from decoders import DECODERS, decode
from hypothesis import given, settings
from hypothesis import strategies as st

from goalreel.encoding.assembling.sample_parts import MOST_PICTURES, PartStore
from goalreel.encoding.yuv import Yuv420p
from goalreel.h264.inter import skip_run
from goalreel.h264.nal import IDR, PPS, SLICE, SPS, pack
from goalreel.h264.slices import SliceHeader, header_bits, slice_nal
from goalreel.mp4.reader import read_index
from goalreel.rendering.layers import NOTHING
from goalreel.rendering.vector_style import THEMES, VectorStyle

SIZE = (600, 400)
CASES = {
    "plain": {},
    "no caption": {"caption": ""},
    "long card": {"cards": 15},
    "HUD": {"hud": True},
    "HUD, long card, no caption": {"hud": True, "cards": 15, "caption": ""},
}


@pytest.fixture(scope="module")
def films(tmp_path_factory) -> dict[str, Assembled]:
    """Return films of some states of three episodes, with every kind of overlay."""
    folder, thin = tmp_path_factory.mktemp("films"), thinned(simulated(), 9)
    return {
        name: assembled(folder / f"{number}.mp4", STYLES[DISCRETE], thin, **options)
        for number, (name, options) in enumerate(CASES.items())
    }


def with_order(unit: bytes, header: SliceHeader, order: int) -> bytes:
    """Return a P slice with another pic_order_cnt_lsb, its bits written one by one."""
    bits, place = np.unpackbits(np.frombuffer(rbsp_of(unit), np.uint8)), header_bits(header).order
    bits[place : place + 16] = [int(bit) for bit in format(order, "016b")]
    return pack(unit[0] >> 5, type_of(unit), np.packbits(bits).tobytes())


def type_of(unit: bytes) -> int:
    """Return nal_unit_type."""
    return unit[0] & 31


def access_units(film: Assembled) -> list[list[bytes]]:
    """Return the NAL units of each sample, without parameter sets."""
    units = [u for u in units_of(byte_stream(film.path)) if type_of(u) in (SLICE, IDR)]
    # A frame begins with macroblock 0, whose ue(v) is a single 1 bit.
    starts = [number for number, unit in enumerate(units) if unit[1] & 0x80]
    ends = [*starts[1:], len(units)]
    return [units[start:end] for start, end in zip(starts, ends, strict=True)]


def alone(film: Assembled) -> tuple[bytes, list[int]]:
    """Return a stream of pairs of a title card and a frame over it, and each frame's pair.

    The frame is the coded atlas's own slice. Only the HUD's slices come from the film.
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
                    for unit in samples[frame][
                        1:
                    ]:  # the length of a header depends on its first number
                        first = first_macroblock(unit)
                        assert first >= coded_atlas.region.size
                        units.append(with_order(unit, SliceHeader("P", first), 2))
            which.append(pairs[key])
    return stream_of(film.size, units), which


def first_macroblock(unit: bytes) -> int:
    """Return first_mb_in_slice, the ue(v) that a slice begins with."""
    bits = "".join(format(byte, "08b") for byte in rbsp_of(unit)[:5])
    zeros = bits.index("1")
    return int(bits[zeros : 2 * zeros + 1], 2) - 1


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("decoder", DECODERS)
def test_every_frame_is_what_its_picture_decodes_to_alone(films, name, decoder):
    film = films[name]
    stream, which = alone(film)
    streams = stream, byte_stream(film.path)
    pairs, shown = (decode(decoder, one, film.size) for one in streams)
    assert len(shown) == len(film.cache) == len(which)
    assert len(pairs) == 2 * len(set(which))
    starts = set(film.cache.offsets[:-1].tolist())
    for frame, pair in enumerate(which):
        # The card is the IDR picture, and equals the frame without anything over it.
        wanted = pairs[2 * pair + (frame not in starts)]
        assert np.array_equal(shown[frame], wanted), frame


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
    times = [packet.pts * packet.time_base for packet in packets]
    assert times == [Fraction(frame, 30) for frame in range(len(film.cache))]
    assert [packet.dts for packet in packets] == [packet.pts for packet in packets]
    assert {packet.duration * packet.time_base for packet in packets} == {Fraction(1, 30)}
    keys = [frame for frame, packet in enumerate(packets) if packet.is_keyframe]
    assert keys == film.cache.offsets[:-1].tolist()
    units = units_of(byte_stream(film.path))
    idrs = [frame for frame, part in enumerate(access_units(film)) if type_of(part[0]) == IDR]
    assert idrs == keys and set(map(type_of, units)) == {SLICE, IDR, SPS, PPS}


# In smaller frames, car and text take a larger part.
LOOKS = [(STYLES[env], hud, 3, 1, 49) for env, hud in ((DISCRETE, False), (CONTINUOUS, True))]
LOOKS += [
    (VectorStyle(DISCRETE, size, THEMES[theme]), hud, 1, 23, least)
    for size, theme, hud, least in (
        ((1280, 720), "light", True, 51),
        ((1920, 1080), "dark", True, 52),
        ((1080, 1920), "light", False, 54),
        ((320, 240), "dark", True, 47),
        ((960, 540), "light", True, 50),
    )
]


@pytest.mark.parametrize(("style", "hud", "reaches", "every", "least"), LOOKS)
def test_frames_look_like_the_caches(style, hud, reaches, every, least, tmp_path):
    trajectories = thinned(simulated(style.env, range(reaches)), every)
    film = assembled(tmp_path / "f.mp4", style, trajectories, hud=hud)
    shown = strictly(byte_stream(film.path))
    found = psnr(shown, film.cache)
    assert shown.shape[1:] == (film.size[1] * 3 // 2, film.size[0])
    assert found.min() >= least and found.mean() >= least + 1
    for picture, frame in zip(shown, Yuv420p(film.cache).frames(), strict=True):
        chroma = picture[film.size[1] :].astype(int) - frame[film.size[1] :]
        assert np.square(chroma).mean() < 255**2 / 10**4, "40 dB"


def test_qualities_are_ordered_in_size_and_likeness(tmp_path):
    thin = thinned(simulated(reaches=range(2)), 13)
    sizes, means = [], []
    for quality in ("small", "balanced", "best"):
        path = tmp_path / f"{quality}.mp4"
        film = assembled(path, STYLES[DISCRETE], thin, quality, hud=True)
        sizes.append(read_index(path).sizes.sum())
        means.append(psnr(strictly(byte_stream(path)), film.cache).mean())
    assert sizes == sorted(sizes) and means == sorted(means)
    assert means[1] - means[0] > 1 < means[2] - means[1], means


@settings(deadline=None, max_examples=200)
@given(
    st.binary(min_size=1, max_size=40),
    st.integers(0, 3000),
    st.integers(0, 51),
    st.integers(0, MOST_PICTURES - 1),
)
def test_an_order_can_be_patched_into_any_slice(data, first, qp, count):
    """The patched bytes equal a slice that was written with this order."""
    header, store = SliceHeader("P", first, qp=qp), PartStore()
    bits = np.unpackbits(np.frombuffer(data, np.uint8))
    part = store.add_slice(header, bits)
    (sample,) = store.samples(np.array([[part]]), np.array([count]))[1]
    expected = slice_nal(replace(header, poc_lsb=2 * count), bits)
    assert bytes(sample) == len(expected).to_bytes(4, "big") + expected


def test_film_has_parameter_sets_once_and_its_texts(filmed):
    results = filmed.folder / "results"
    table = pd.read_csv(results / "episodes.csv")
    index = read_index(results / "film.mp4")
    assert list(index.keyframes) == (table["first_frame"] - table["card_frames"]).tolist()
    with av.open(str(results / "film.mp4")) as container:
        (subtitles,) = container.streams.subtitles
        assert len([p for p in container.demux(subtitles) if p.size > 2]) == 8
        assert json.loads(container.metadata["comment"])["stage"] == "concat"
    # FFmpeg's filter puts the parameter sets of the sample entry before each IDR picture.
    for packet in packets_of(results / "film.mp4"):
        assert nal_types(bytes(packet)) <= {SLICE, IDR}
    assert len(strictly(byte_stream(results / "film.mp4"))) == index.frames
