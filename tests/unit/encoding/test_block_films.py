"""Test films assembled from macroblocks, each coded once, with independent decoders."""

from dataclasses import replace

import av
import numpy as np
import pytest
from assembling import byte_stream, packets_of, psnr
from browser import play, sought
from decoders import DECODERS, decode
from frames import drawn, film, layer_of

from goalreel.encoding.assembling import block_contents, block_samples
from goalreel.encoding.yuv import planar
from goalreel.environments.environment import make_environment
from goalreel.films.segment import assemble_blocks
from goalreel.mp4.reader import read_index
from goalreel.rendering.overlay import add_bands, add_overlay

ENCODE = {"qp": 25, "card_qp": 12}
# Size of the frames, scale, caption.
CASES = [
    ((64, 80), 1, True),
    ((48, 32), 3, True),
    ((210, 160), 3, True),
    ((33, 47), 1, False),
    ((31, 45), 2, True),
    ((16, 16), 1, False),
]
PATTERN = np.random.default_rng(1).integers(0, 256, (6, 16, 16, 3), np.uint8)


def episode(size, frames: int, seed: int) -> list[np.ndarray]:
    """Return frames of squares that move over a plain background. Some frames are equal."""
    rng = np.random.default_rng(seed)
    ground = np.full((*size, 3), rng.integers(0, 256, 3), np.uint8)
    images, position = [], rng.integers(0, 40, (3, 2))
    for number in range(frames):
        frame = ground.copy()
        if number % 5 != 3:
            position = (position + rng.integers(-4, 5, position.shape)) % size
        for pattern, (row, column) in zip(PATTERN[seed % 3 :], position.tolist(), strict=False):
            part = frame[row : row + 12, column : column + 12]
            part[:] = pattern[: part.shape[0], : part.shape[1]]
        images.append(frame)
    return images


def cache_of(path, size, scale=1, caption=True, lengths=(23, 2, 40), first=0):
    """Return a frame cache of enlarged episodes, each with its own caption.

    The shortest has two frames: H.264 does not allow adjacent IDR pictures of one idr_pic_id.
    """
    pictures = [episode(size, length, first + n) for n, length in enumerate(lengths)]
    cache, bands = add_bands(drawn(path, *pictures), scale, caption)
    if not caption:
        return cache
    paper = cache.background.copy()
    lines = []
    for number in range(len(lengths)):
        line = paper.copy()
        line[4:12, 2 + 4 * (first + number) : 20 + 4 * (first + number)] = 250
        lines.append(line)
    index = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    captions = replace(layer_of("caption", paper, lines), index=index)
    return replace(cache, layers=(*cache.layers, captions))


def decoded(path, cache, decoder="FFmpeg") -> np.ndarray:
    """Return the frames of a film, (frames, H * 3 / 2, W) uint8."""
    size = cache.background.shape[1::-1]
    return decode(decoder, byte_stream(path), size)


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize(("size", "scale", "caption"), CASES)
def test_film_shows_every_frame_in_order(tmp_path, monkeypatch, size, scale, caption, decoder):
    """Every change is shown, and rows without changes stay equal bit for bit."""
    monkeypatch.setattr("goalreel.rendering.blocks._MAX_IMAGES", 7)  # several groups per episode
    cache = cache_of(tmp_path / "c.npz", size, scale, caption)
    assemble_blocks(cache, tmp_path / "f.mp4", 30, ENCODE, "{}")
    shown, expected = decoded(tmp_path / "f.mp4", cache, decoder), [*map(planar, cache)]
    assert shown.shape == (len(cache), *expected[0].shape)
    assert psnr(shown, cache).min() > 36
    height, width = cache.background.shape[:2]
    for number, (now, frame) in enumerate(zip(shown, expected, strict=True)):
        if number in cache.offsets:
            continue
        for top in range(0, height, 16):
            rows = slice(top, min(top + 16, height))
            if np.array_equal(frame[rows], expected[number - 1][rows]):
                assert np.array_equal(now[rows], shown[number - 1][rows])


def test_episode_has_same_bytes_in_any_shard(tmp_path, monkeypatch):
    """The limits of blocks, changes and slices in memory do not matter either."""

    def samples(name, **options) -> list[bytes]:
        cache = cache_of(tmp_path / f"{name}.npz", (64, 80), **options)
        assemble_blocks(cache, tmp_path / f"{name}.mp4", 30, ENCODE, "{}")
        return list(map(bytes, packets_of(tmp_path / f"{name}.mp4")))

    whole = samples("whole", lengths=(30, 20, 40))
    assert samples("first", lengths=(30,)) == whole[:30]
    assert samples("rest", lengths=(20, 40), first=1) == whole[30:]
    monkeypatch.setattr(block_samples, "_MAX_SLICES", 3)
    for name, most in (("_MAX_NEW_BLOCKS", 2), ("_MAX_CHANGES", 7), ("_MAX_BLOCKS", 1)):
        monkeypatch.setattr(block_contents, name, most)
        assert samples(name, lengths=(30, 20, 40)) == whole


def test_film_index_matches_its_frames(tmp_path):
    cache = cache_of(tmp_path / "c.npz", (64, 80), lengths=(40, 2, 300))
    assemble_blocks(cache, tmp_path / "f.mp4", 50, ENCODE, "{}")
    index = read_index(tmp_path / "f.mp4")
    assert (index.frames, list(index.keyframes)) == (342, [0, 40, 42])
    with av.open(str(tmp_path / "f.mp4")) as container:
        stream = container.streams.video[0]
        assert (stream.profile, stream.average_rate) == ("Constrained Baseline", 50)
        frames = list(container.decode(stream))
        assert [frame.pts for frame in frames] == [n * frames[1].pts for n in range(342)]
        container.seek(frames[200].pts, stream=stream)
        (sought,) = (f for f in container.decode(stream) if f.pts == frames[200].pts)
        assert np.array_equal(sought.to_ndarray(), frames[200].to_ndarray())


@pytest.mark.parametrize("env", ["CartPole-v1", "FrozenLake-v1", "ALE/Pong-v5", "LunarLander-v3"])
@pytest.mark.parametrize("hud", [False, True])
def test_film_of_environment_is_close_to_frames(tmp_path, env, hud):
    """In Pong the band of the HUD begins within a macroblock."""
    environment = make_environment({"env": env, "max_episode_steps": 60})
    trajectories, cache = film(tmp_path / "c.npz", environment, range(2))
    cache = add_overlay(cache, trajectories, env, ["first", "second"], hud)
    assemble_blocks(cache, tmp_path / "f.mp4", 30, ENCODE, "{}")
    shown = decoded(tmp_path / "f.mp4", cache)
    assert len(shown) == len(cache) == len(trajectories.states)
    assert psnr(shown, cache).min() > 48


@pytest.mark.slow
def test_browser_plays_and_seeks(driver, tmp_path):
    environment = make_environment({"env": "CartPole-v1"})
    trajectories, cache = film(tmp_path / "c.npz", environment, range(4))
    cache = add_overlay(cache, trajectories, "CartPole-v1", list("abcd"), hud=False)
    assemble_blocks(cache, tmp_path / "f.mp4", 30, ENCODE, "{}")
    end = play(driver, tmp_path / "page.html", "f.mp4")
    assert end == pytest.approx(len(cache) / 30, abs=1e-3)
    for number in (len(cache) - 1, 7, int(cache.offsets[2]) - 1, int(cache.offsets[2]), 0):
        frame = sought(driver, (number + 0.5) / 30).astype(int)
        # Chroma has half the resolution, so edges between colors differ.
        assert (np.abs(frame - cache[number]) > 24).mean() < 0.002, number


@pytest.mark.parametrize(("width", "length"), [(1024, 2), (1040, 4)])
def test_noise_fits_length_fields(tmp_path, width, length):
    """Frames of noise at the best quality, around the limit of two-byte lengths."""
    rng = np.random.default_rng(3)
    pictures = [rng.integers(0, 256, (48, width, 3), np.uint8) for _ in range(3)]
    cache, _ = add_bands(drawn(tmp_path / "c.npz", pictures), 1, False)
    assemble_blocks(cache, tmp_path / "f.mp4", 30, {"qp": 4, "card_qp": 1}, "{}")
    assert len(decoded(tmp_path / "f.mp4", cache)) == 3
    with av.open(str(tmp_path / "f.mp4")) as container:
        assert container.streams.video[0].codec_context.extradata[4] & 3 == length - 1
