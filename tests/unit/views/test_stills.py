"""Poster, contact sheet and preview show exactly the right frames."""

import io
import itertools
import statistics
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import DISCRETE
from frames import layer_of
from gymnasium_frames import played as played_by_gymnasium
from PIL import Image, ImageFilter, ImageSequence
from test_grid import CARTPOLE, run_of

from goalreel.arrays import spread
from goalreel.rendering.frame_cache import FrameCache
from goalreel.simulation.trajectories import read_trajectories
from goalreel.views import poster
from goalreel.views.contact_sheet import draw_sheet, thumbnail
from goalreel.views.filmed_episodes import read_filmed
from goalreel.views.poster import draw_poster, enlarge, moving_box, stroboscope
from goalreel.views.preview import MAX_BYTES, preview


@pytest.fixture(scope="module")
def files(tmp_path_factory, atlases):
    """Return the files of seven reaches in two shards."""
    return run_of(tmp_path_factory.mktemp("run"), atlases, [range(4), range(4, 7)])


@pytest.fixture(scope="module")
def filmed(files):
    """Return seven reaches in two shards."""
    return read_filmed(*files, DISCRETE, "reach")


def played(files, reach: int, env=DISCRETE) -> list[np.ndarray]:
    """Return Gymnasium's frames of a reach."""
    shards = map(read_trajectories, files[0])
    (shard,) = (shard for shard in shards if reach in shard.episodes.reach)
    index = shard.episodes.reach.tolist().index(reach)
    seed, actions = int(shard.episodes.seed[index]), shard.episode(index)[1]
    return [*played_by_gymnasium(env, seed, actions)]


def cache_of(frames: list[np.ndarray]) -> FrameCache:
    """Return a cache of one episode."""
    layer = layer_of("all", frames[0], frames)
    return FrameCache(frames[0], (layer,), np.array([0, len(frames)]))


def test_stills_choose_the_median_reach_of_the_table(files, filmed):
    steps = [s for path in files[0] for s in read_trajectories(path).episodes.steps.tolist()]
    row = filmed.median().row
    assert row["steps"] == statistics.median_low(steps) and row["reached"] is True
    ordered = [episode.row["steps"] for episode in filmed.episodes(filmed.ranking())]
    assert ordered == sorted(steps)
    assert spread(range(10), 4) == [0, 3, 6, 9] and spread(range(9), 1) == [4]
    assert [episode.row["reach"] for episode in filmed.episodes()] == list(range(7))


def test_ranking_skips_failures_unless_all_failed(filmed):
    def with_reached(reached):
        summaries = []
        for summary, flags in zip(filmed.summaries, (reached[:4], reached[4:]), strict=True):
            episodes = replace(summary.episodes, reached=np.array(flags))
            summaries.append(replace(summary, episodes=episodes))
        return replace(filmed, summaries=summaries)

    some = with_reached([False, True, False, False, False, False, True])
    assert sorted(some.ranking()) == [1, 6]
    assert with_reached([False] * 7).ranking() == filmed.ranking()


def test_contact_sheet_shows_first_middle_and_last_frames(files, filmed):
    chosen = [6, 3, 4]
    sheet = draw_sheet(filmed, chosen)
    line = (sheet == (201, 206, 214)).all(axis=2)  # frame around thumbnails
    tops = np.flatnonzero(line.sum(axis=1) > line.shape[1] / 2).reshape(-1, 2)
    lefts = np.flatnonzero(line.sum(axis=0) > line.shape[0] / 2).reshape(-1, 2)
    shown = [played(files, reach) for reach in chosen]
    box = moving_box((frame for frames in shown for frame in frames), (213, 320))
    cars = [(frame != shown[0][0]).any(axis=2) for frames in shown for frame in frames]
    assert box[0].start > 10 and np.any(cars, axis=0)[box].sum() == np.any(cars, axis=0).sum()
    for (top, bottom), frames in zip(tops, shown, strict=True):
        for (left, right), step in zip(lefts, (0, (len(frames) - 1) // 2, -1), strict=True):
            cut = Image.fromarray(frames[step][box])
            size = 320, cut.height * 320 // cut.width
            expected = cut.resize(size, Image.Resampling.LANCZOS)
            assert np.array_equal(sheet[top + 1 : bottom, left + 1 : right], expected)


def test_poster_shows_last_frame_over_fainter_ones(files, filmed):
    episode = filmed.median()
    frames, cache = played(files, episode.row["reach"]), episode.cache
    picture = stroboscope(cache, episode.frames)
    car = (frames[-1] != cache.background).any(axis=2)
    assert np.array_equal(picture[car], frames[-1][car])
    # The path now has cars on it, none as dark as the last.
    white = (cache.background == 255).all(axis=2)
    added = (picture != cache.background).any(axis=2) & white & ~car
    assert added.sum() > 5 * car.sum()
    assert picture[added].min() > 50 > picture[car].min() == 0


def test_stroboscope_positions_lie_apart_and_get_stronger():
    """A black square walks to the right over gray, by its own width per step."""
    frames = []
    for step in range(10):
        frame = np.full((40, 200, 3), 200, np.uint8)
        frame[10:20, 20 * step : 20 * step + 10] = 0
        frames.append(frame)
    picture = stroboscope(cache_of(frames), range(10))
    shades = [picture[15, 20 * step + 5, 0] for step in range(10)]
    assert shades == sorted(shades, reverse=True) and len(set(shades)) == 10 and shades[-1] == 0
    gaps = [picture[15, 20 * step + 15, 0] for step in range(9)]
    assert set(gaps) == {200}


@pytest.mark.parametrize(("count", "across"), [(1, 1), (2, 2), (9, 3)])
def test_poster_is_a_filmstrip_if_everything_moves(filmed, count, across, monkeypatch):
    frames = list(np.random.default_rng(0).integers(0, 256, (count, 30, 50, 3), np.uint8))
    assert stroboscope(cache_of(frames), range(count)) is None
    episode = replace(filmed.median(), cache=cache_of(frames), frames=range(count))
    monkeypatch.setattr(type(filmed), "median", lambda _: episode)
    lines = [line.tobytes() for line in draw_poster(filmed)]
    found = [
        next(n for n, line in enumerate(lines) if row.tobytes() in line)
        for row in (frame[0].repeat(1200 // (50 * across), 0) for frame in spread(frames, 6))
    ]
    assert found == sorted(found) and len(set(found)) == -(-len(found) // across)


def shown_by(data: bytes) -> tuple[list[np.ndarray], int]:
    """Return an animation's frames, with equal neighbors joined, and its length."""
    with Image.open(io.BytesIO(data)) as animation:
        frames = [
            (np.asarray(f.convert("RGB")), f.info["duration"])
            for f in ImageSequence.Iterator(animation)
        ]
        assert animation.getexif()[0x010E] == "made so" and animation.info["loop"] == 0
    return [frame for frame, _ in frames], sum(duration for _, duration in frames)


@pytest.mark.parametrize("fps", [30, 240])
def test_preview_equals_median_reach_and_keeps_its_time(files, filmed, fps):
    episode = filmed.median()
    frames = played(files, episode.row["reach"])
    data, said = preview(episode.cache, episode.frames, fps, "made so")
    shown, duration = shown_by(data)
    assert len(data) < 500_000
    assert np.array_equal(shown[0], frames[0]) and np.array_equal(shown[-1], frames[-1])
    # The last frame stays for a second.
    assert abs(duration - 1000 - (len(frames) - 1) * 1000 / fps) <= 1
    wanted = min(len(frames), len(frames) * 50 // fps)
    assert f"{wanted} of {len(frames)} frames" in said
    assert wanted * 0.9 < len(shown) <= wanted


def test_stills_show_the_frames_of_gymnasium(tmp_path, atlases):
    files = run_of(tmp_path, atlases, [range(2), range(2, 3)], CARTPOLE)
    episode = read_filmed(*files, CARTPOLE, "reach").median()
    frames = played(files, episode.row["reach"], CARTPOLE)
    poster = draw_poster(read_filmed(*files, CARTPOLE, "reach"))
    pole = (poster == [202, 152, 101]).all(axis=2).any(axis=0)
    assert (np.diff(pole.astype(int)) == 1).sum() >= 3, "moments next to each other"
    assert pole.mean() > 0.1, "cut to the cart"
    shown, _ = shown_by(preview(episode.cache, episode.frames, 30, "made so")[0])
    wanted = frames[:1]
    wanted += [new for old, new in itertools.pairwise(frames) if (new != old).any()]
    assert len(wanted) > 8
    assert all(np.array_equal(*pair) for pair in zip(shown, wanted, strict=True))


def test_small_frames_are_enlarged_by_an_integer():
    """Frames of 210x160 are enlarged 2 times in thumbnails, 3 in previews, 6 in posters."""
    frame = np.random.default_rng(2).integers(0, 2, (210, 160, 3), np.uint8) * 255
    cache = cache_of([frame, 255 - frame])
    (shown, _), _ = shown_by(preview(cache, range(2), 30, "made so")[0])
    for large, times in ((thumbnail(frame), 2), (shown, 3), (enlarge(frame), 6)):
        assert np.array_equal(large, np.kron(frame, np.ones((times, times, 1), np.uint8)))


@pytest.mark.parametrize(("frames", "height", "width"), [(12, 300, 400), (1, 700, 1000)])
def test_preview_of_noise_is_small_enough(frames, height, width):
    """Noise is the hardest content to compress."""
    noise = np.random.default_rng(1).integers(0, 256, (frames, height, width, 3), dtype=np.uint8)
    data, said = preview(cache_of(list(noise)), range(frames), 30, "")
    assert len(data) < MAX_BYTES <= 500_000 and "with loss" in said


@pytest.mark.parametrize("shape", [(30, 100), (60, 400), (7, 9)])
def test_gap_around_moving_parts_is_that_of_a_filter(shape):
    mask = np.random.default_rng(2).random(shape) < 0.01
    side = 2 * round(shape[1] * 0.02 / 2) + 1
    grown = Image.fromarray(mask.astype(np.uint8)).filter(ImageFilter.MaxFilter(side))
    assert np.array_equal(poster._grow(mask), np.asarray(grown) > 0)


def test_filmstrip_of_narrow_frames_cuts_its_labels():
    frames = [np.full((400, 20, 3), shade, np.uint8) for shade in range(9)]
    episode = SimpleNamespace(cache=cache_of(frames), frames=range(9))
    assert poster.filmstrip(episode).shape[2] == 3
