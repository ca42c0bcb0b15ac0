"""Episodes of more pictures than one IDR picture can number play on, every frame right."""

from types import SimpleNamespace

import numpy as np
import pytest
from assembling import byte_stream, quantisers, strictly
from openh264 import OPENH264, openh264_or_skip

from goalreel.encoding import choice
from goalreel.encoding.assembling import long_episodes
from goalreel.encoding.assembling.code_atlas import code_atlas
from goalreel.encoding.assembling.coded_atlas import CodedAtlas
from goalreel.errors import GoalreelError
from goalreel.film.segment import assemble_segment
from goalreel.h264.nal import IDR, SLICE, split
from goalreel.h264.parameter_sets import read_pps, read_sps
from goalreel.h264.slice_reader import read_header
from goalreel.mp4.reader import read_index
from goalreel.pictures.atlas import Atlas
from goalreel.pictures.frame_cache import FrameCache
from goalreel.pictures.layers import NOTHING, Layer, Patches, cut_patches, join
from goalreel.pictures.overlay import Board

WIDTH, HEIGHT = SIZE = (48, 48)
PICTURES = 6
CLEAR = (16, 32)  # rows of pixels between captions and HUD
BOARD = Board(np.full((HEIGHT, WIDTH, 3), 240, np.uint8))


def boxes(top: int, left: int, seed: int) -> Patches:
    """Return patches of noise in a box of 10x16 pixels."""
    noise = np.random.default_rng(seed).integers(0, 256, (PICTURES, 10, 16, 3), np.uint8)
    return join(cut_patches(BOARD.background, [(top, left, pixels)]) for pixels in noise)


@pytest.fixture(scope="module")
def coded_atlas() -> CodedAtlas:
    """Return a coded atlas of a few pictures; its card has no HUD."""
    atlas = Atlas(np.zeros((PICTURES, 1), np.int16), BOARD.background, boxes(18, 20, 0))
    return code_atlas(atlas, BOARD.background, CLEAR, quantisers())


def frames(*lengths: int) -> FrameCache:
    """Return episodes of so many pictures, title card included, in no order.

    The HUD's two layers share a macroblock.
    """
    rng, offsets = np.random.default_rng(1), np.cumsum([0, *lengths])
    index = rng.integers(0, PICTURES, (3, offsets[-1])).astype(np.int32)
    index[:, offsets[:-1]] = NOTHING
    layers = [Layer("car", boxes(18, 20, 0), index[0])]
    for name, left, numbers in (("step", 4, index[1]), ("return", 20, index[2])):
        empty = Patches(np.array([[34, left, 10, 16]], np.int32), np.full((160, 3), 240, np.uint8))
        layers.append(Layer(name, join([empty, boxes(34, left, left)]), numbers + 1))
    return FrameCache(BOARD.background, tuple(layers), offsets)


def film(path, coded_atlas: CodedAtlas, cache: FrameCache) -> bytes:
    """Write a film, and return it as an Annex B stream."""
    assemble_segment(cache, coded_atlas, SimpleNamespace(), path, 30, "{}")
    assert read_index(path).frames == len(cache)
    return byte_stream(path)


def assert_right(shown: np.ndarray, path, coded_atlas: CodedAtlas, cache: FrameCache) -> None:
    """Hold every frame against the same picture in an episode of two."""
    shows = np.stack([layer.index for layer in cache.layers])
    _, first, which = np.unique(shows, axis=1, return_index=True, return_inverse=True)
    index = np.stack([np.zeros_like(first), first], axis=1).ravel()  # each after a card of its own
    layers = tuple(Layer(one.name, one.patches, one.index[index]) for one in cache.layers)
    short = FrameCache(cache.background, layers, np.arange(0, len(index) + 1, 2))
    alone = strictly(film(path, coded_atlas, short))[1::2]
    assert len(shown) == len(cache) and len(np.unique(alone, axis=0)) == len(alone)
    for start in range(0, len(cache), 4096):
        part = slice(start, start + 4096)
        assert np.array_equal(shown[part], alone[which[part]]), start


@pytest.mark.parametrize("decoder", ["FFmpeg", OPENH264])
def test_every_frame_is_right_across_the_borders(coded_atlas, tmp_path, decoder):
    """The first episode just fits, the second has a picture too many, the third twice so many."""
    longest = long_episodes.LONGEST
    cache = frames(longest + 1, longest + 2, 2 * longest + 40, 30)
    stream = film(tmp_path / "long.mp4", coded_atlas, cache)
    decode = {"FFmpeg": lambda s, _: strictly(s), "OpenH264": openh264_or_skip}[decoder]
    assert_right(decode(stream, SIZE), tmp_path / "short.mp4", coded_atlas, cache)
    units = split(stream)
    assert sum(u.type == IDR and u.rbsp[0] & 0x80 > 0 for u in units) == 4, "one an episode"
    kept = [u for u in units if u.type == SLICE and u.ref_idc and u.rbsp[0] & 0x80]
    assert len(kept) == 1 + 1 + 2
    assert orders(stream) == [2 * n for e in range(4) for n in range(len(cache.episode(e)))]


def orders(stream: bytes) -> list[int]:
    """Return each picture's order, as Rec. ITU-T H.264, 8.2.1.1, tells it."""
    found, high, low = [], 0, 0  # of the reference picture before
    sps, pps, *units = split(stream)
    parameters = read_sps(sps.rbsp), read_pps(pps.rbsp)
    for unit in units:
        if unit.type not in (SLICE, IDR) or not unit.rbsp[0] & 0x80:
            continue
        if unit.type == IDR:
            high = low = 0
        now = read_header(unit, *parameters)[0].poc_lsb
        wrapped = (now < low and low - now >= 32768) - (now > low and now - low > 32768)
        found.append(high + 65536 * wrapped + now)
        if unit.ref_idc:
            high, low = high + 65536 * wrapped, now
    return found


@pytest.mark.parametrize("decoder", ["FFmpeg", OPENH264])
def test_every_round_up_to_the_last_is_right(coded_atlas, tmp_path, decoder, monkeypatch):
    """The same with rounds of 7 pictures, so that an episode of the most pictures is quick."""
    most = 7 * 15
    monkeypatch.setattr(long_episodes, "LONGEST", 7)
    monkeypatch.setattr(long_episodes, "_MOST", most)
    cache = frames(most + 1, 5, most + 1, 8, 9)
    stream = film(tmp_path / "long.mp4", coded_atlas, cache)
    decode = {"FFmpeg": lambda s, _: strictly(s), "OpenH264": openh264_or_skip}[decoder]
    assert_right(decode(stream, SIZE), tmp_path / "short.mp4", coded_atlas, cache)
    with pytest.raises(GoalreelError, match="an episode of 107 pictures"):
        film(tmp_path / "long.mp4", coded_atlas, frames(most + 2))


def test_the_most_pictures_are_what_the_configuration_allows(coded_atlas, tmp_path):
    film(tmp_path / "long.mp4", coded_atlas, frames(choice.MOST_PICTURES))
    before = (tmp_path / "long.mp4").read_bytes()
    with pytest.raises(GoalreelError, match="holds 245746; choose encode.encoder: x264"):
        film(tmp_path / "long.mp4", coded_atlas, frames(choice.MOST_PICTURES + 1))
    assert (tmp_path / "long.mp4").read_bytes() == before
