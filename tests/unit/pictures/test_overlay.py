"""Cards, captions and HUD stand where they should, say what is so, and leave the picture alone."""

import itertools
import re
from dataclasses import replace

import av
import numpy as np
import pandas as pd
import pytest
from conftest import DISCRETE, rendered, simulated
from frames import layer_of
from gymnasium_frames import played

from goalreel.encoding.choice import card_frames
from goalreel.errors import GoalreelError
from goalreel.pictures.frame_cache import FrameCache
from goalreel.pictures.hud import hud_layers
from goalreel.pictures.overlay import captions, overlaid
from goalreel.pictures.text_patches import Canvas

CAPTION = "Reach {reach} · seed {seed} · {steps} steps"
CARDS = 15
TOP, BOTTOM = 35, 369  # the rows between belong to the car and its hill


def laid_over(cache, trajectories, caption=CAPTION, hud=True, cards=CARDS, env=DISCRETE):
    """Return frames with an overlay, as encode makes it."""
    return overlaid(
        cache, trajectories, env, captions(caption, trajectories, env, "reach"), hud, cards
    )


@pytest.fixture(scope="module")
def trajectories():
    return simulated()


@pytest.fixture(scope="module")
def shown(trajectories, cache) -> FrameCache:
    """Return three reaches with all that can lie over them."""
    return laid_over(cache, trajectories)


def test_between_caption_and_hud_every_frame_is_gymnasiums(trajectories, shown):
    for episode in range(3):
        seed, actions = int(trajectories.episodes.seed[episode]), trajectories.episode(episode)[1]
        expected = [*[shown.background] * CARDS, *played(DISCRETE, seed, actions)]
        for frame, picture in zip(shown.episode(episode), expected, strict=True):
            assert np.array_equal(shown[frame][TOP:BOTTOM], picture[TOP:BOTTOM])


def test_an_episodes_caption_stays_from_its_card_to_its_end_and_is_its_own(shown):
    captions = []
    for episode in range(3):
        frames = shown[shown.episode(episode).start : shown.episode(episode).stop]
        assert (frames[:, :TOP] == frames[0, :TOP]).all()
        ink = np.count_nonzero(frames[0, :TOP] < 128)
        assert ink > 1000, "a line of text"
        captions.append(frames[0, :TOP].tobytes())
    assert len(set(captions)) == 3


def test_with_all_turned_off_the_frames_are_the_caches(trajectories, cache):
    plain = laid_over(cache, trajectories, "", hud=False, cards=0)
    assert plain.offsets.tolist() == cache.offsets.tolist()
    assert all(np.array_equal(a, b) for a, b in zip(plain, cache, strict=True))


def test_no_frame_depends_on_the_shard(atlases, shown):
    alone = simulated(reaches=range(2, 3))
    again = laid_over(rendered(alone, atlases), alone)
    frames = shown.episode(2)
    assert len(again) == len(frames)
    assert all(np.array_equal(again[i], shown[frame]) for i, frame in enumerate(frames))


def test_the_hud_tells_step_and_velocity(trajectories, shown):
    states = trajectories.episode(0)[0]
    frames = shown[CARDS : CARDS + len(states)][:, BOTTOM:]
    counters = [frame[:, :90].tobytes() for frame in frames]
    assert len(set(counters)) == len(counters), "every step its number"
    other = shown.episode(1).start + CARDS
    assert counters[50] == shown[other + 50][BOTTOM:, :90].tobytes()
    # The bar fills from its middle, column 360, to the right for speeds to the right.
    bar = frames[:, 11:13, 302:419, 0].max(axis=1) < 100
    right, left = bar[:, 59:].sum(axis=1), bar[:, :58].sum(axis=1)
    assert np.abs((right - left) / 60 * 0.07 - states[:, 1]).max() < 0.07 * 2 / 60
    assert np.array_equal(shown[0][BOTTOM:], frames[0]), "the card shows the reset's HUD"


def test_cards_show_a_resets_hud_however_an_episode_starts(atlases):
    """Recorded episodes may start in motion: no card, nor coded atlas, depends on that."""
    still = simulated(reaches=range(1))
    states = still.states.copy()
    states[0, 1] = 0.04
    moving = replace(still, states=states)
    cards = [laid_over(rendered(t, atlases), t)[0][BOTTOM:] for t in (still, moving)]
    assert np.array_equal(*cards)


def test_the_return_is_the_sum_of_the_rewards(atlases):
    """Two episodes with the same return so far show the same patch there, others do not."""
    trajectories = simulated("MountainCarContinuous-v0", reaches=range(2))
    cache = rendered(trajectories, atlases, "MountainCarContinuous-v0")
    shown = laid_over(cache, trajectories, "", cards=0, env="MountainCarContinuous-v0")
    rewards = trajectories.episode(0)[2]
    tenths = [round(10 * sum(rewards[:step].tolist())) for step in range(len(rewards) + 1)]
    patches = [shown[frame][BOTTOM:, 96:230].tobytes() for frame in shown.episode(0)]
    assert len(set(tenths)) > 50
    assert [tenths.index(t) for t in tenths] == [patches.index(patch) for patch in patches]


def test_other_environments_hold_their_first_frame_and_get_a_plate(trajectories):
    rng = np.random.default_rng(0)
    frames = rng.integers(100, 200, (trajectories.offsets[-1], 60, 160, 3), np.uint8)
    layer = layer_of("picture", frames[0], frames)
    cache = FrameCache(frames[0], (layer,), trajectories.offsets, trajectories.digest())
    shown = laid_over(cache, trajectories, "{steps}", cards=2, env="Other-v0")
    first = shown.episode(1).start
    reset = trajectories.offsets[1]
    for frame in (first, first + 1, first + 2):
        assert np.array_equal(shown[frame][20:44], frames[reset][20:44])
    plate = (shown[first] != frames[reset]).any(axis=2)
    assert plate.sum() > 60 and (shown[first][plate].min(axis=1) < 30).mean() > 0.5
    assert [layer.name for layer in shown.layers] == ["picture", "caption", "step", "return"]


@pytest.mark.parametrize("size", [(160, 120), (192, 128), (240, 160), (1080, 1920), (160, 2160)])
def test_the_huds_parts_never_cover_each_other_nor_leave_the_picture(trajectories, size):
    width, height = size
    canvas = Canvas(np.full((height, width, 3), 255, np.uint8))
    layers = hud_layers(canvas, trajectories, DISCRETE)
    assert layers[0].name == "step"
    boxes = [(layer.patches.boxes[:, 1].min(), layer) for layer in layers]
    for (_, one), (start, _) in itertools.pairwise(boxes):
        assert (one.patches.boxes[:, 1] + one.patches.boxes[:, 3]).max() <= start
    for layer in layers:
        assert (layer.patches.boxes[:, 1] + layer.patches.boxes[:, 3]).max() <= width
        assert (layer.patches.boxes[:, 0] + layer.patches.boxes[:, 2]).max() <= height


@pytest.mark.parametrize("size", [(2, 2), (3, 5), (8, 600), (400, 4)])
def test_even_the_smallest_pictures_get_what_fits(trajectories, size):
    frame = np.full((*size, 3), 90, np.uint8)
    layer = layer_of("picture", frame, [frame] * int(trajectories.offsets[-1]))
    cache = FrameCache(frame, (layer,), trajectories.offsets, trajectories.digest())
    shown = laid_over(cache, trajectories, "{seed}", cards=1, env="Other-v0")
    assert shown[0].shape == (*size, 3)
    for layer in shown.layers:
        top, left, height, width = layer.patches.boxes.T
        assert (top + height <= size[0]).all() and (left + width <= size[1]).all()


def test_frames_of_other_trajectories_are_refused(cache):
    with pytest.raises(GoalreelError, match="do not show these trajectories"):
        laid_over(cache, simulated(seed=8))


@pytest.mark.parametrize(("seconds", "fps", "frames"), [(0, 30, 0), (0.5, 30, 15), (0.5, 1, 1)])
def test_a_card_lasts_its_seconds_and_at_least_a_frame(seconds, fps, frames):
    assert card_frames(seconds, fps) == frames


def test_chapters_and_subtitles_begin_at_the_card_and_cover_the_film(filmed):
    results = filmed.folder / "results"
    table = pd.read_csv(results / "episodes.csv")
    starts = (table["first_frame"] - table["card_frames"]) / 30
    with av.open(str(results / "film.mp4")) as container:
        chapters = container.chapters()
        (stream,) = container.streams.subtitles
        lines = [
            (float(packet.pts * packet.time_base), bytes(packet)[2:].decode())
            for packet in container.demux(stream)
            if packet.size > 2
        ]
        assert stream.codec_context.name == "mov_text"
    titles = [chapter["metadata"]["title"] for chapter in chapters]
    assert [text for _, text in lines] == titles
    assert np.allclose([start for start, _ in lines], starts, atol=0.001)
    for title, row in zip(titles, table.itertuples(), strict=True):
        assert re.findall(r"\d+", title) == [str(row.reach), str(row.seed), str(row.steps)]
