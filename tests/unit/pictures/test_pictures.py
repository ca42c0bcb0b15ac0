"""A frame is pixel for pixel what `env.render()` draws."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from conftest import CONTINUOUS, DISCRETE, STYLES, rendered, simulated

from goalreel.environments.physics import ENVIRONMENTS
from goalreel.environments.registry import describe
from goalreel.pictures.mountain_car_scene import distinct_positions, keys
from goalreel.provenance.spec import NO_SPEC
from goalreel.simulation.trajectories import Attempts, Trajectories

ENVS = [DISCRETE, CONTINUOUS]


def gymnasium_picture(env, state):
    """Return what Gymnasium draws for a state, (2,) float64 or float32."""
    env.unwrapped.state = state
    return env.render()


@pytest.fixture(params=ENVS)
def env(request):
    """Return each environment, ready to render."""
    made = gymnasium.make(request.param, render_mode="rgb_array")
    made.reset(seed=0)
    yield made
    made.close()


@pytest.mark.parametrize(
    "env", [DISCRETE, pytest.param(CONTINUOUS, marks=pytest.mark.slow)], indirect=True
)
def test_every_picture_of_the_atlas_equals_env_render(env, atlases):
    """Gymnasium draws each picture from a state that has it, float64 or float32."""
    name = env.spec.id
    atlas, seen = atlases[name], set()
    for dtype in (np.float64, np.float32) if name == CONTINUOUS else (np.float64,):
        positions = distinct_positions(dtype)
        pictures = atlas.find(keys(positions))
        assert pictures.min() >= 0
        for picture, position in zip(pictures.tolist(), positions, strict=True):
            if picture not in seen:
                frame = atlas.background.copy()
                atlas.patches.paste(frame, picture)
                state = np.array([position, 0], dtype)
                assert np.array_equal(frame, gymnasium_picture(env, state)), position
                seen.add(picture)
    assert len(seen) == len(atlas.keys) > 6000
    anywhere = np.random.default_rng(0).uniform(-1.2, 0.6, 1_000_000)
    assert (atlas.find(keys(anywhere)) < 0).sum() == 0


def test_random_states_equal_env_render(env, atlases):
    name = env.spec.id
    rng = np.random.default_rng(11)
    states = rng.uniform((-1.2, -0.07), (0.6, 0.07), (2000, 2))
    if name == CONTINUOUS:  # the reset state is float64, all others are float32
        states[1:] = states[1:].astype(np.float32)
    cache = rendered(one_episode(states), atlases, name)
    for i, state in enumerate(states):
        given = state.astype(np.float32) if name == CONTINUOUS and i else state
        assert np.array_equal(cache[i], gymnasium_picture(env, given)), state


def test_whole_episodes_equal_env_render(env, atlases):
    """Gymnasium plays by itself here: its own reset, its own steps, its own frames."""
    name = env.spec.id
    policy = {"name": "pump", "epsilon": 0.2} | ({"force": 0.8} if name == CONTINUOUS else {})
    shard = simulated(name, range(5), policy)
    cache = rendered(shard, atlases, name)
    assert len(cache) == len(shard.states)
    for e in range(5):
        _, actions, _ = shard.episode(e)
        frames = cache.episode(e)
        env.reset(seed=int(shard.episodes.seed[e]))
        assert np.array_equal(cache[frames[0]], env.render())
        for frame, action in zip(frames[1:], actions, strict=True):
            env.step(np.array([action]) if name == CONTINUOUS else int(action))
            assert np.array_equal(cache[frame], env.render())


def test_a_picture_that_the_atlas_lacks_is_drawn_where_it_is_needed(env, atlases):
    name = env.spec.id
    shard = simulated(name, range(1), {"name": "pump", "epsilon": 0.0})
    whole = rendered(shard, atlases, name)
    atlas = atlases[name]
    half = np.arange(0, len(atlas.keys), 2)
    poor = replace(atlas, keys=atlas.keys[half], patches=atlas.patches.take(half))
    assert (poor.find(keys(shard.states[:, 0])) < 0).any()
    cache = rendered(shard, {name: poor}, name)
    assert all(np.array_equal(a, b) for a, b in zip(cache, whole, strict=True))


def test_the_car_never_touches_the_rows_for_text(env, atlases):
    atlas, touched = atlases[env.spec.id], np.zeros(400, bool)
    frame = atlas.background.copy()
    for picture, (top, left, tall, wide) in enumerate(atlas.patches.boxes.tolist()):
        box = slice(top, top + tall), slice(left, left + wide)
        atlas.patches.paste(frame, picture)
        touched[box[0]] |= (frame[box] != atlas.background[box]).any(axis=(1, 2))
        frame[box] = atlas.background[box]
    rows = np.flatnonzero(touched)
    assert (rows[0], 399 - rows[-1]) == STYLES[env.spec.id].clear_rows


def one_episode(states: np.ndarray) -> Trajectories:
    """Return trajectories of one episode with the given states, (n, 2) float64."""
    nothing = np.zeros(0)
    columns = Attempts(*[np.zeros(1)] * 9)
    offsets = np.array([0, len(states)])
    return Trajectories(offsets, states, nothing, nothing, columns, columns, "", NO_SPEC)


def test_environments_agree_with_gymnasiums_registry():
    for name, environment in ENVIRONMENTS.items():
        spec = gymnasium.spec(name)
        made = gymnasium.make(name).unwrapped
        assert spec.max_episode_steps == environment.max_steps
        assert made.goal_position == environment.goal_position == describe(name).goal_position
        assert (made.screen_width, made.screen_height) == (600, 400)
