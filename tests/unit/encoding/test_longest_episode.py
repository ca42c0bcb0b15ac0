"""An episode of as many pictures as one IDR picture can number is right; a longer one is refused."""

from types import SimpleNamespace

import numpy as np
import pytest
from assembling import byte_stream, quantisers, strictly
from openh264 import OPENH264, openh264_or_skip

from goalreel.encoding import choice
from goalreel.encoding.assembling.code_atlas import code_atlas
from goalreel.encoding.assembling.coded_atlas import CodedAtlas
from goalreel.encoding.assembling.sample_parts import MOST_PICTURES
from goalreel.errors import GoalreelError
from goalreel.film.segment import assemble_segment
from goalreel.mp4.reader import read_index
from goalreel.pictures.atlas import Atlas
from goalreel.pictures.frame_cache import FrameCache
from goalreel.pictures.layers import NOTHING, Layer, Patches, cut_patches, join
from goalreel.pictures.overlay import Canvas

WIDTH, HEIGHT = SIZE = (48, 48)
PICTURES = 6
CLEAR = (16, 32)  # rows of pixels between captions and HUD
NAMED = SimpleNamespace(episodes=SimpleNamespace(row=lambda episode: {"reach": 500 + episode}))
CANVAS = Canvas(np.full((HEIGHT, WIDTH, 3), 240, np.uint8))


def boxes(top: int, left: int, seed: int) -> Patches:
    """Return patches of noise in a box of 10x16 pixels."""
    noise = np.random.default_rng(seed).integers(0, 256, (PICTURES, 10, 16, 3), np.uint8)
    return join(cut_patches(CANVAS.background, [(top, left, pixels)]) for pixels in noise)


@pytest.fixture(scope="module")
def coded_atlas() -> CodedAtlas:
    """Return a coded atlas of a few pictures; its card has no HUD."""
    atlas = Atlas(np.zeros((PICTURES, 1), np.int16), CANVAS.background, boxes(18, 20, 0))
    return code_atlas(atlas, CANVAS.background, CLEAR, quantisers())


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
    return FrameCache(CANVAS.background, tuple(layers), offsets)


def film(path, coded_atlas: CodedAtlas, cache: FrameCache) -> bytes:
    """Write a film, and return it as an Annex B stream."""
    assemble_segment(cache, coded_atlas, NAMED, path, 30, "{}")
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
def test_every_frame_of_the_longest_episode_is_right(coded_atlas, tmp_path, decoder):
    cache = frames(MOST_PICTURES, 30)
    stream = film(tmp_path / "long.mp4", coded_atlas, cache)
    decode = {"FFmpeg": lambda s, _: strictly(s), "OpenH264": openh264_or_skip}[decoder]
    assert_right(decode(stream, SIZE), tmp_path / "short.mp4", coded_atlas, cache)


def test_a_longer_episode_is_refused_by_its_reach(coded_atlas, tmp_path):
    with pytest.raises(
        GoalreelError,
        match="^reach 501 has 16,385 pictures, .* up to 16,384 .*; set encode.encoder: x264$",
    ):
        film(tmp_path / "long.mp4", coded_atlas, frames(5, MOST_PICTURES + 1))
    assert choice.MOST_PICTURES == MOST_PICTURES, "so that the configuration allows what fits"
    assert not list(tmp_path.iterdir())
