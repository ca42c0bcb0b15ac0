"""The cache returns rendered frames pixel for pixel, in any order."""

import numpy as np
import pytest
from frames import drawn, groups_of

from goalreel.encoding.yuv import Yuv420p, planar
from goalreel.rendering import blocks
from goalreel.rendering.overlay import add_bands

SIZES = [(31, 45), (16, 16), (1, 1), (17, 33), (64, 80), (50, 500)]


def noisy_frames(size, count, seed=0):
    """Return frames of which a few pixels, none or all change from one to the next."""
    rng = np.random.default_rng(seed)
    frame, made = rng.integers(0, 256, (*size, 3), np.uint8), []
    for number in range(count):
        y, x = rng.integers(0, size[0]), rng.integers(0, size[1])
        if number % 5:
            frame[y : y + 3, x : x + 9] = number % 3
        if number % 23 == 22:
            frame = rng.integers(0, 2, (*size, 3), np.uint8) * 255
        made.append(frame.copy())
    return made


@pytest.mark.parametrize("size", SIZES)
def test_frame_cache_returns_every_frame_in_any_order(tmp_path, monkeypatch, size):
    monkeypatch.setattr(blocks, "_MAX_IMAGES", 7)
    episodes = [noisy_frames(size, count, seed) for seed, count in enumerate((40, 1, 7, 8))]
    cache = drawn(tmp_path / "c.npz", *episodes)
    wanted = [frame for episode in episodes for frame in episode]
    assert len(cache) == 56 and [len(cache.episode(e)) for e in range(4)] == [40, 1, 7, 8]
    assert np.array_equal(cache[:], np.stack(wanted))
    assert np.array_equal(cache[50:3:-9], np.stack(wanted[50:3:-9]))
    for frame in np.random.default_rng(1).permutation(56).tolist():
        assert np.array_equal(cache[frame], wanted[frame])
    assert np.array_equal(cache[-1], wanted[-1])
    assert np.array_equal(cache.background, wanted[0])
    with pytest.raises(IndexError):
        cache[56]


@pytest.mark.parametrize(
    ("size", "scale", "bands"),
    [
        *(
            (size, scale, (True, True))
            for size, scale in zip(SIZES, [1, 3, 5, 2, 3, 2], strict=True)
        ),
        *(((31, 45), scale, (scale > 2, False)) for scale in (1, 2, 3, 5)),
    ],
    ids=str,
)
def test_kept_planes_equal_those_of_the_scaled_frame(tmp_path, monkeypatch, size, scale, bands):
    monkeypatch.setattr(blocks, "_MAX_IMAGES", 7)
    frames = noisy_frames(size, 40)
    cache, _ = add_bands(drawn(tmp_path / "c.npz", frames), scale, *bands)
    view, wanted = Yuv420p(cache), [planar(frame) for frame in cache]
    top, (height, width) = cache.layers[0].top, (length * scale for length in size)
    assert bool(top) == bands[0]
    for shown, frame in zip(cache, frames, strict=True):
        large = np.repeat(np.repeat(frame, scale, 0), scale, 1)
        assert np.array_equal(shown[top : top + height, :width], large)
    for shown, frame in zip(view.frames(), wanted, strict=True):
        assert np.array_equal(shown, frame)
    # Skip some frames, and go backwards, as clips do.
    for which in (range(3, 40, 6), range(39, -1, -4)):
        for shown, number in zip(view.frames(which), which, strict=True):
            assert np.array_equal(shown, wanted[number])


def test_group_limits_blocks_and_begins_with_whole_frame(monkeypatch):
    monkeypatch.setattr(blocks, "_MAX_BLOCKS", 100)
    frames = [np.random.default_rng(i).integers(0, 256, (64, 80, 3), np.uint8) for i in range(30)]
    groups = list(groups_of(iter(frames)))
    assert sum(group.count for group in groups) == 30
    first = 0
    for group in groups:
        assert len(group.blocks) < 100 + 20
        assert (group.changes[0] == 0).sum() == 20
        last = group.count - 1
        assert np.array_equal(group.compose(last, (64, 80)), frames[first + last])
        first += group.count


def test_equal_blocks_and_frames_are_stored_once():
    still = np.zeros((160, 160, 3), np.uint8)
    moving = [still.copy() for _ in range(40)]
    for number, frame in enumerate(moving):
        column = 16 * (number // 4 % 10)
        frame[32:48, column : column + 16] = 255
    (group,) = groups_of(iter(moving))
    assert group.count == 40 and len(group.blocks) == 2
    assert group.changes.shape[1] == 100 + 2 * 9
