"""Cards, captions and HUD are in their places, correct, and do not change the frame."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from assembling import CAPTION
from conftest import DISCRETE, rendered, simulated
from frames import drawn
from gymnasium_frames import played

from goalreel.encoding.encoder_selection import card_frames
from goalreel.errors import GoalreelError
from goalreel.rendering.frame_cache import FrameCache
from goalreel.rendering.overlay import TRACK_ROWS, add_overlay, captions, fitting_scale, hud_layers
from goalreel.rendering.text import Canvas

TOP, BOTTOM = 35, 369  # the rows between show the car and the hill


def with_overlay(cache, trajectories, caption=CAPTION, track=True, env=DISCRETE):
    """Return frames with an overlay, like the stage encode."""
    texts = captions(caption, trajectories, env, "reach")
    return add_overlay(cache, trajectories, env, texts, True, track)


@pytest.fixture(scope="module")
def trajectories():
    return simulated()


@pytest.fixture(scope="module")
def shown(trajectories, cache) -> FrameCache:
    """Return three reaches with every kind of overlay."""
    return with_overlay(cache, trajectories)


def test_frames_between_caption_and_hud_equal_gymnasium(trajectories, shown):
    for episode in range(3):
        seed, actions = int(trajectories.episodes.seed[episode]), trajectories.episode(episode)[1]
        expected = [shown.background, *played(DISCRETE, seed, actions)]
        for frame, picture in zip(shown.episode(episode), expected, strict=True):
            assert np.array_equal(shown[frame][TOP:BOTTOM], picture[TOP:BOTTOM])


def test_caption_stays_for_its_whole_episode(shown):
    captions = []
    for episode in range(3):
        frames = shown[shown.episode(episode).start : shown.episode(episode).stop]
        assert (frames[:, :TOP] == frames[0, :TOP]).all()
        ink = np.count_nonzero(frames[0, :TOP] < 128)
        assert ink > 1000, "a line of text"
        captions.append(frames[0, :TOP].tobytes())
    assert len(set(captions)) == 3


def test_no_frame_depends_on_the_shard(atlases, shown):
    alone = simulated(reaches=range(2, 3))
    again = with_overlay(rendered(alone, atlases), alone)
    frames = shown.episode(2)
    assert len(again) == len(frames)
    assert all(np.array_equal(again[i], shown[frame]) for i, frame in enumerate(frames))


def test_hud_shows_step_and_velocity(trajectories, shown):
    states = trajectories.episode(0)[0]
    frames = shown[1 : 1 + len(states)][:, BOTTOM:]
    counters = [frame[:, :90].tobytes() for frame in frames]
    assert len(set(counters)) == len(counters), "every step its number"
    other = shown.episode(1).start + 1
    assert counters[50] == shown[other + 50][BOTTOM:, :90].tobytes()
    # The bar fills from its middle, column 360, in the direction of the speed.
    bar = frames[:, 11:13, 302:419, 0].max(axis=1) < 100
    right, left = bar[:, 59:].sum(axis=1), bar[:, :58].sum(axis=1)
    assert np.abs((right - left) / 60 * 0.07 - states[:, 1]).max() < 0.07 * 2 / 60
    assert np.array_equal(shown[0][BOTTOM:], frames[0]), "the track has the reset's HUD"


def test_track_shows_hud_of_reset_for_any_start(atlases):
    """Recorded episodes may start in motion, but the track and the coded atlas do not depend on it."""
    still = simulated(reaches=range(1))
    moving = replace(still, states=still.states + [0, 0.04])
    tracks = [with_overlay(rendered(t, atlases), t)[0][BOTTOM:] for t in (still, moving)]
    assert np.array_equal(*tracks)


def test_hud_shows_the_sum_of_the_rewards(atlases):
    """Two episodes show the same patch if their returns so far are equal."""
    trajectories = simulated("MountainCarContinuous-v0", reaches=range(2))
    cache = rendered(trajectories, atlases, "MountainCarContinuous-v0")
    shown = with_overlay(cache, trajectories, "", track=False, env="MountainCarContinuous-v0")
    rewards = trajectories.episode(0)[2]
    tenths = [round(10 * sum(rewards[:step].tolist())) for step in range(len(rewards) + 1)]
    patches = [shown[frame][BOTTOM:, 96:230].tobytes() for frame in shown.episode(0)]
    assert len(set(tenths)) > 50
    assert [tenths.index(t) for t in tenths] == [patches.index(patch) for patch in patches]


def noise_cache(trajectories, path, size) -> tuple[FrameCache, np.ndarray]:
    """Return noise as frames of an environment, and as an array."""
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (trajectories.offsets[-1], *size, 3), np.uint8)
    bounds = itertools.pairwise(trajectories.offsets.tolist())
    cache = drawn(path, *(frames[a:b] for a, b in bounds))
    return replace(cache, source=trajectories.digest()), frames


def test_other_environments_get_bands(trajectories, tmp_path):
    cache, frames = noise_cache(trajectories, tmp_path / "c.npz", (30, 40))
    texts = captions("{seed}: {steps} steps", trajectories, "Other-v0", "reach")
    shown = add_overlay(cache, trajectories, "Other-v0", texts, True, False, 16)
    assert shown[0].shape == (480 + 2 * 32, 640, 3)
    for episode, (start, end) in enumerate(itertools.pairwise(trajectories.offsets.tolist())):
        pictures = frames[start:end]
        above = {shown[frame][:32].tobytes() for frame in shown.episode(episode)}
        below = [shown[frame][-32:].tobytes() for frame in shown.episode(episode)]
        assert len(above) == 1 and len(set(below)) == len(below)
        for frame, picture in zip(shown.episode(episode), pictures, strict=True):
            assert np.array_equal(shown[frame][32:-32], picture.repeat(16, 0).repeat(16, 1))
    for band in (shown[0][:32], shown[0][-32:]):
        rows, columns = np.nonzero(band.min(axis=2) > 150)
        assert len(rows) > 100 and (band[[0, -1]] == band[0, 0]).all()
        assert band[0, 0].max() < 60, "light letters, clear of the border, on dark paper"
        assert 9 <= rows.max() - rows.min() <= 24 and columns.min() > 3


@pytest.mark.parametrize("size", [(2, 2), (3, 5), (8, 600), (400, 4), (64, 64), (1080, 1920)])
def test_band_holds_its_text_at_any_width(trajectories, tmp_path, size):
    short = simulated(reaches=range(1))
    picture = np.full((*size, 3), 90, np.uint8)
    cache = drawn(tmp_path / "c.npz", [picture] * int(short.offsets[-1]))
    cache = replace(cache, source=short.digest())
    for texts, hud in itertools.product(
        (None, ["Reach 17 · seed 3249930381360904"]), (False, True)
    ):
        shown = add_overlay(cache, short, "Other-v0", texts, hud, False, 1)
        height, width = (side + side % 2 for side in size)
        above, below = (shown.background.shape[0] - height) // max((texts is not None) + hud, 1), 0
        above, below = (above if texts else 0), (above if hud else 0)
        assert shown[0].shape == (above + height + below, width, 3)
        assert np.array_equal(shown[0][above : above + size[0], : size[1]], picture)
        for layer in shown.layers[1:]:
            top, left, tall, wide = layer.patches.boxes.T
            inside = top + tall <= above if layer.name == "caption" else top >= above + height
            assert inside.all() and (top + tall <= len(shown[0])).all()
            assert (left + wide <= width).all()


@pytest.mark.parametrize(
    ("size", "scale"),
    [((210, 160), 3), ((400, 600), 1), ((320, 64), 1), ((319, 64), 2), ((100, 1000), 1)],
)
def test_small_frames_scale_to_480_rows_within_1920_columns(size, scale):
    assert fitting_scale(size) == scale


@pytest.mark.parametrize("size", [(160, 120), (192, 128), (240, 160), (1080, 1920), (160, 2160)])
def test_hud_parts_stay_apart_and_inside_the_frame(trajectories, size):
    width, height = size
    canvas = Canvas(np.full((height, width, 3), 255, np.uint8))
    layers = hud_layers(canvas, TRACK_ROWS, trajectories, DISCRETE)
    assert layers[0].name == "step"
    boxes = [(layer.patches.boxes[:, 1].min(), layer) for layer in layers]
    for (_, one), (start, _) in itertools.pairwise(boxes):
        assert (one.patches.boxes[:, 1] + one.patches.boxes[:, 3]).max() <= start
    for layer in layers:
        assert (layer.patches.boxes[:, 1] + layer.patches.boxes[:, 3]).max() <= width
        assert (layer.patches.boxes[:, 0] + layer.patches.boxes[:, 2]).max() <= height


def test_overlay_rejects_frames_of_other_trajectories(cache):
    with pytest.raises(GoalreelError, match="do not show these trajectories"):
        with_overlay(cache, simulated(seed=8))


@pytest.mark.parametrize(("seconds", "fps", "frames"), [(0, 30, 0), (0.5, 30, 15), (0.5, 1, 2)])
def test_card_lasts_its_seconds_and_at_least_two_frames(seconds, fps, frames):
    assert card_frames(seconds, fps) == frames


def test_hud_shows_an_unknown_return(trajectories, cache):
    trajectories = replace(trajectories, rewards=np.full_like(trajectories.rewards, np.nan))
    cache = replace(cache, source=trajectories.digest())
    shown = with_overlay(cache, trajectories, "", track=False)
    assert np.array_equal(shown[1][BOTTOM:, 96:230], shown[2][BOTTOM:, 96:230])


def test_frames_too_narrow_for_signals_are_rejected(trajectories, tmp_path):
    cache, _ = noise_cache(trajectories, tmp_path / "c.npz", (8, 8))
    signals = {"value": np.zeros(len(trajectories.actions), np.float32)}
    with pytest.raises(GoalreelError, match="overlay.signals: Frames are too narrow"):
        signalling = replace(trajectories, signals=signals)
        cache = replace(cache, source=signalling.digest())
        add_overlay(cache, signalling, "Other-v0", None, False, scale=1, signals=True)
