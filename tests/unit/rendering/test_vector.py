"""The vector style shows the same scene as Gymnasium, in the same places, at any size."""

import gymnasium
import numpy as np
import pytest
from conftest import CONTINUOUS, DISCRETE, simulated
from gymnasium_frames import drawn

from goalreel.films.render import render_states
from goalreel.provenance.spec import canonical, parse_spec
from goalreel.rendering.atlas import draw_atlas, make_style, read_atlas, write_atlas
from goalreel.rendering.frame_cache import open_cache, write_cache
from goalreel.rendering.gymnasium_style import MIN_POSITION, SCALE
from goalreel.rendering.vector_style import THEMES

SIZES = [(600, 400), (160, 120), (960, 540), (400, 600), (3840, 2160)]
LIGHT = THEMES["light"]
GREY = (128, 128, 128)
HALF = 0.5  # a pixel, as Gymnasium truncates to whole pixels
NOISE = 0.05  # the error of a place from 8-bit pixels
SHAPE = (400, 600)
ROWS, COLUMNS = np.mgrid[: SHAPE[0], : SHAPE[1]] + 0.5  # pixel i spans i to i + 1


def options(size=(600, 400), theme="light"):
    return {"style": "vector", "width": size[0], "height": size[1], "theme": theme}


def vector(env=DISCRETE, size=(600, 400), theme="light"):
    return make_style(env, options(size, theme))


def render_positions(style, positions):
    """Return the empty track, and yield the frame of each position."""
    track, boxes = style.draw(style.keys(positions))
    for top, left, pixels in boxes:
        frame = track.copy()
        frame[top : top + len(pixels), left : left + pixels.shape[1]] = pixels
        yield track, frame


def render_in_gymnasium(env, positions):
    """Yield a frame without a car, and then Gymnasium's frame of each position."""
    return drawn(env, (np.array([position, 0.0]) for position in [5.0, *positions]))


def center(weights, box=()):
    """Return the center (x, y) of weights in a box of a frame, (h, w)."""
    places = weights * COLUMNS[box], weights * ROWS[box]
    return np.array([place.sum() for place in places]) / weights.sum()


def shares(frame, full, none):
    """Return the share of each pixel that a color covers, from its red and the background's."""
    return np.clip((frame[..., 0].astype(float) - none) / (full - none), 0, 1)


def middle_positions(low, high, count):
    """Return the drawn positions, which are in the middles of their keys' quarters."""
    positions = np.random.default_rng(3).uniform(low, high, count)
    return MIN_POSITION + (vector().keys(positions)[:, 0] + 0.5) / 4 / SCALE


def test_drawn_car_is_within_an_eighth_of_a_pixel():
    positions = np.random.default_rng(0).uniform(-1.2, 0.6, 100_000)
    keys = vector().keys(positions)
    drawn = (keys[:, 0] + 0.5) / 4
    assert np.abs(drawn - (positions + 1.2) * 600 / 1.8).max() <= 0.125 + 1e-9
    borders = vector().keys(np.array([-1.2, 0.6, np.float32(-1.2), np.float32(0.6)]))
    assert borders[:, 0].tolist() == [0, 2399, 0, 2399]
    assert len(np.unique(keys)) == len(vector().all_keys()) == 2400


def car_axes(position):
    """Return a box around the car, and the coordinates of its pixels relative to the car."""
    foot = (position - MIN_POSITION) * SCALE
    axle = 400 - ((np.sin(3 * position) * 0.45 + 0.55) * SCALE + 10)
    box = slice(int(axle) - 40, int(axle) + 40), slice(max(int(foot) - 40, 0), int(foot) + 40)
    x, y = COLUMNS[box] - foot, axle - ROWS[box]
    cos, sin = np.cos(np.cos(3 * position)), np.sin(np.cos(3 * position))
    return box, x * cos + y * sin, y * cos - x * sin


@pytest.mark.parametrize("env", [DISCRETE, CONTINUOUS])
def test_car_and_wheels_match_gymnasium_within_half_a_pixel(env):
    # The whole car is in the frame, away from the flag.
    positions = middle_positions(-1.13, 0.35, 200)
    theirs = render_in_gymnasium(env, positions)
    bare = next(theirs)
    hill = (bare != 255).any(axis=2)
    for axis in (0, 1):
        hill |= np.roll(hill, 1, axis) | np.roll(hill, -1, axis)
    wheels, cars = [], []
    for position, their, (track, mine) in zip(
        positions, theirs, render_positions(vector(env), positions), strict=True
    ):
        box, along, up = car_axes(position)
        their, mine, track = their[box], mine[box], track[box]
        grey = (their == GREY).all(axis=2)
        for axle in (-10, 10):
            distance = np.hypot(along - axle, up)
            hub = shares(mine, LIGHT.hub[0], LIGHT.tyre[0]) * (distance < 5.5)
            wheels.append(center(hub, box) - center(grey * (distance < 10), box))
        # The border of the car gives its place. Pixels inside count as full.
        inside = (np.abs(along) < 18) & (np.abs(up - 10) < 8)
        inside |= np.minimum(np.hypot(along - 10, up), np.hypot(along + 10, up)) < 6
        around = (np.abs(along) < 24) & (np.abs(up - 6) < 19) & ~hill[box]
        tyre = (np.abs(mine - np.array(LIGHT.tyre)) < 9).all(axis=2)
        mine = np.where(inside | tyre, 1, shares(mine, 0, track[..., 0].astype(float)))
        their = np.where(inside | grey, 1, shares(their, 0, 255))
        cars.append(center(mine * around, box) - center(their * around, box))
    assert np.abs(wheels).max() <= HALF + NOISE and np.abs(cars).max() <= HALF + NOISE
    # The errors are not all in the same direction.
    assert np.abs(np.mean(wheels, axis=0)).max() < 0.1 > np.abs(np.mean(cars, axis=0)).max()


@pytest.mark.parametrize("env", [DISCRETE, CONTINUOUS])
def test_hill_and_flag_match_gymnasium_within_half_a_pixel(env):
    their = next(render_in_gymnasium(env, []))
    ((mine, _),) = render_positions(vector(env), np.zeros(1))
    lines = [shares(mine, LIGHT.line[0], 190), shares(their, 0, 255)]
    flag = int((gymnasium.make(env).unwrapped.goal_position - MIN_POSITION) * SCALE)
    columns = slice(2, flag - 3)
    parts = [line[:, columns] for line in lines]
    heights = [(part * ROWS[:, columns]).sum(axis=0) / part.sum(axis=0) for part in parts]
    assert np.abs(heights[0] - heights[1]).max() <= HALF
    pole = (np.abs(COLUMNS - flag - 0.5) < 4) & (ROWS > 40) & (ROWS < 60)
    poles = [center(line * pole) for line in lines]
    assert np.abs(poles[0] - poles[1]).max() <= HALF
    cloth = (ROWS < 40) & (flag + 3 < COLUMNS)  # neither has blue, and the pole is excluded
    cloths = [center((250.0 - np.minimum(f[..., 2], 250)) * cloth) for f in (mine, their)]
    assert np.abs(cloths[0] - cloths[1]).max() <= HALF


@pytest.mark.parametrize(
    ("size", "theme"), [(SIZES[0], "dark"), *((size, "light") for size in SIZES)], ids=str
)
def test_frames_keep_text_rows_free_except_for_the_flag(size, theme):
    style = vector(size=size, theme=theme)
    track, boxes = style.draw(style.all_keys()[:: 10 if size[0] <= 600 else 400])
    assert track.shape == (size[1], size[0], 3) and track.dtype == np.uint8
    changed = np.zeros(track.shape[:2], bool)
    for top, left, pixels in boxes:
        part = changed[top : top + pixels.shape[0], left : left + pixels.shape[1]]
        part |= (pixels != track[top : top + part.shape[0], left : left + part.shape[1]]).any(2)
    above, below = style.clear_rows
    scale = min(size[0] / 600, size[1] / 400)
    for rows, least in ((slice(above), 33), (slice(size[1] - below, None), 30)):
        assert len(track[rows]) >= least * scale - 1
        assert not changed[rows].any()
        drawn = (track[rows] != np.array(THEMES[theme].paper)).any(axis=(0, 2))
        assert not drawn[: int(size[0] / 2 + (560 - 300) * scale)].any()
    assert not (track[size[1] - below :] != np.array(THEMES[theme].paper)).any()
    # The car is one row closer to the middle, so the free rows are complete to 3 pixels.
    assert changed[: above + 3].any() or size[0] > 600


def test_scene_is_centered_and_reaches_the_borders():
    wide, scene = vector(size=(1200, 400)), vector()
    ((whole, _),), ((middle, _),) = (render_positions(s, np.array([-0.3])) for s in (wide, scene))
    # Antialiasing at the borders of the scene depends on neighbors.
    assert np.array_equal(whole[:, 302:898], middle[:, 2:598])
    line = shares(whole, LIGHT.line[0], 190) > 0.9
    assert line.any(axis=0).all()


@pytest.mark.parametrize("env", [DISCRETE, CONTINUOUS])
def test_frame_depends_only_on_its_position(env, tmp_path):
    style = vector(env, (300, 200), "dark")
    spec = parse_spec(canonical({"config": {"env": env, "render": options((300, 200), "dark")}}))
    write_atlas(tmp_path / "atlas.npz", draw_atlas(style, spec))
    atlas = read_atlas(tmp_path / "atlas.npz")
    assert atlas.keys.shape == (2400, 1) and atlas.keys.dtype == np.int16
    shard = simulated(env, range(2))
    cache = render_states(shard, atlas, style, spec)
    write_cache(tmp_path / "frames.npz", cache)
    cache = open_cache(tmp_path / "frames.npz")
    chosen = np.arange(0, len(shard.states), 7)
    drawn = render_positions(style, shard.states[chosen, 0])
    assert all(np.array_equal(cache[i], f) for i, (_, f) in zip(chosen, drawn, strict=True))
