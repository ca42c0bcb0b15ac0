"""Test assembled episodes at the maximum number of frames per IDR picture."""

import numpy as np
import pytest
from assembling import byte_stream, quantizers
from decoders import DECODERS, decode

from goalreel.encoding.assembling.coded_atlas import CodedAtlas
from goalreel.encoding.assembling.encode_atlas import code_atlas
from goalreel.encoding.encoder_selection import MOST_PICTURES
from goalreel.errors import GoalreelError
from goalreel.films.segment import assemble_segment
from goalreel.mp4.reader import read_index
from goalreel.rendering.atlas import Atlas
from goalreel.rendering.frame_cache import FrameCache
from goalreel.rendering.layers import NOTHING, Layer, Patches, cut_patches, join
from goalreel.rendering.overlay import Canvas

WIDTH, HEIGHT = SIZE = (48, 48)
PICTURES = 6
CLEAR = (16, 32)  # pixel rows between captions and HUD
CANVAS = Canvas(np.full((HEIGHT, WIDTH, 3), 240, np.uint8))


def boxes(top: int, left: int, seed: int) -> Patches:
    """Return patches of noise in a box of 10x16 pixels."""
    noise = np.random.default_rng(seed).integers(0, 256, (PICTURES, 10, 16, 3), np.uint8)
    return join(cut_patches(CANVAS.background, [(top, left, pixels)]) for pixels in noise)


@pytest.fixture(scope="module")
def coded_atlas() -> CodedAtlas:
    """Return a coded atlas of a few pictures, with a card without a HUD."""
    atlas = Atlas(np.zeros((PICTURES, 1), np.int16), CANVAS.background, boxes(18, 20, 0))
    return code_atlas(atlas, CANVAS.background, CLEAR, quantizers())


def frames(*lengths: int) -> FrameCache:
    """Return episodes with these numbers of frames, title card included, in random order.

    The two layers of the HUD share a macroblock.
    """
    rng, offsets = np.random.default_rng(1), np.cumsum([0, *lengths])
    index = rng.integers(0, PICTURES, (3, offsets[-1])).astype(np.int32)
    index[:, offsets[:-1]] = NOTHING
    layers = [Layer("car", boxes(18, 20, 0), index[0])]
    for name, left, numbers in (("step", 4, index[1]), ("return", 20, index[2])):
        empty = Patches(np.array([[34, left, 10, 16]], np.int32), np.full((160, 3), 240, np.uint8))
        layers.append(Layer(name, join([empty, boxes(34, left, left)]), numbers + 1))
    return FrameCache(CANVAS.background, tuple(layers), offsets)


@pytest.mark.parametrize("decoder", DECODERS)
def test_longest_episode_shows_every_frame(coded_atlas, tmp_path, decoder):
    cache, path = frames(MOST_PICTURES, 30), tmp_path / "long.mp4"
    assemble_segment(cache, coded_atlas, path, 30, "{}")
    shown = decode(decoder, byte_stream(path), SIZE)
    assert read_index(path).frames == len(cache) == len(shown)
    # Every distinct frame occurs among the first frames, which other tests check.
    numbers = np.stack([layer.index for layer in cache.layers])
    _, first, which = np.unique(numbers, axis=1, return_index=True, return_inverse=True)
    assert first.max() < MOST_PICTURES // 8 and len(np.unique(shown[first], axis=0)) == len(first)
    for start in range(0, len(cache), 4096):
        part = slice(start, start + 4096)
        assert np.array_equal(shown[part], shown[first[which[part]]]), start


def test_assembling_rejects_longer_episode(coded_atlas, tmp_path):
    with pytest.raises(GoalreelError, match="up to 16,384 frames, but one has 16,385. Use x264"):
        cache = frames(5, MOST_PICTURES + 1)
        assemble_segment(cache, coded_atlas, tmp_path / "long.mp4", 30, "{}")
    assert not list(tmp_path.iterdir())
