"""A frame equals `env.render()` pixel for pixel."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import CONTINUOUS, DISCRETE, rendered, simulated
from gymnasium_frames import drawn, played

from goalreel.rendering.gymnasium_style import distinct_positions, keys

ENVS = pytest.mark.parametrize("env", [DISCRETE, CONTINUOUS])


@pytest.mark.slow  # the fast tests render 2,000 random states
@ENVS
def test_atlas_images_equal_env_render(env, atlases):
    """Gymnasium renders each frame from a state, float64 or float32."""
    atlas, states = atlases[env], {}
    for dtype in (np.float64, np.float32) if env == CONTINUOUS else (np.float64,):
        positions = distinct_positions(dtype)
        pictures = atlas.find(keys(positions))
        assert pictures.min() >= 0
        for picture, position in zip(pictures.tolist(), positions, strict=True):
            states.setdefault(picture, np.array([position, 0], dtype))
    for picture, expected in zip(states, drawn(env, states.values()), strict=True):
        frame = atlas.background.copy()
        atlas.patches.paste(frame, picture)
        assert np.array_equal(frame, expected), states[picture]
    assert len(states) == len(atlas.keys) > 6000
    anywhere = np.random.default_rng(0).uniform(-1.2, 0.6, 1_000_000)
    assert (atlas.find(keys(anywhere)) < 0).sum() == 0


@ENVS
def test_whole_episodes_equal_env_render(env, atlases):
    """Here plain Gymnasium resets, steps and renders."""
    policy = {"name": "pump", "epsilon": 0.2} | ({"force": 0.8} if env == CONTINUOUS else {})
    shard = simulated(env, range(5), policy)
    cache = rendered(shard, atlases, env)
    assert len(cache) == len(shard.states)
    for e in range(5):
        expected = played(env, int(shard.episodes.seed[e]), shard.episode(e)[1])
        for frame, picture in zip(cache.episode(e), expected, strict=True):
            assert np.array_equal(cache[frame], picture)


@ENVS
def test_image_missing_from_atlas_is_rendered(env, atlases):
    shard = simulated(env, range(1), {"name": "pump", "epsilon": 0.0})
    whole = rendered(shard, atlases, env)
    atlas = atlases[env]
    half = np.arange(0, len(atlas.keys), 2)
    poor = replace(atlas, keys=atlas.keys[half], patches=atlas.patches.take(half))
    assert (poor.find(keys(shard.states[:, 0])) < 0).any()
    cache = rendered(shard, {env: poor}, env)
    assert all(np.array_equal(a, b) for a, b in zip(cache, whole, strict=True))


@ENVS
def test_car_stays_out_of_the_rows_for_text(env, atlases):
    atlas, touched = atlases[env], np.zeros(400, bool)
    frame = atlas.background.copy()
    for picture, (top, left, tall, wide) in enumerate(atlas.patches.boxes.tolist()):
        box = slice(top, top + tall), slice(left, left + wide)
        atlas.patches.paste(frame, picture)
        touched[box[0]] |= (frame[box] != atlas.background[box]).any(axis=(1, 2))
        frame[box] = atlas.background[box]
    rows = np.flatnonzero(touched)
    assert (rows[0], 399 - rows[-1]) == (35, 35)
