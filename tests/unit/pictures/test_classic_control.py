"""CartPole, Acrobot and Pendulum are drawn pixel for pixel as Gymnasium draws them."""

import gymnasium
import numpy as np
import pytest
from frames import film
from test_blocks import SIZES

from goalreel.environments.environment import make_environment
from goalreel.environments.gymnasium_env import GymnasiumEnvironment
from goalreel.errors import GoalreelError
from goalreel.pictures.blocks import Box, Recorder
from goalreel.pictures.classic_control import _SCENES, Artist, scene_of

IDS = ["CartPole-v0", "CartPole-v1", "Acrobot-v1", "Pendulum-v1"]


def drawn(env, artist: Artist, before: np.ndarray | None) -> np.ndarray:
    """Check an instance's picture and its box; return the picture."""
    picture, box = artist.draw(env.unwrapped)
    wanted = env.render()
    assert np.array_equal(picture, wanted)
    if before is not None:
        outside = np.ones(wanted.shape[:2], bool)
        outside[box.top : box.bottom, box.left : box.right] = False
        assert np.array_equal(wanted[outside], before[outside])
        assert outside.mean() > 0.2
    return wanted


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", IDS)
def test_pictures_are_those_of_gymnasium_from_the_reset_to_the_end(name):
    env = gymnasium.make(name, render_mode="rgb_array")
    for seed in range(6):
        env.action_space.seed(seed)
        env.reset(seed=seed)
        # One way all along, then at random: carts leave by either side, pendulums turn over.
        pushed = [env.action_space.sample(), 0, env.action_space.sample()][seed % 3]
        artist, over, steps = Artist(scene_of(GymnasiumEnvironment(name))), False, 0
        before = drawn(env, artist, None)
        while not over and steps < 150:
            other = seed % 2 or name == "Pendulum-v1"
            *_, terminated, truncated, _ = env.step(env.action_space.sample() if other else pushed)
            before, steps = drawn(env, artist, before), steps + 1
            over = terminated or truncated
    env.close()


@pytest.mark.parametrize("name", IDS[1:])
def test_any_state_is_drawn_as_gymnasium_draws_it(name):
    """Far from what play reaches: at the borders, turned over, at full speed."""
    env, rng = gymnasium.make(name, render_mode="rgb_array"), np.random.default_rng(5)
    env.reset(seed=1)
    artist = Artist(scene_of(GymnasiumEnvironment(name)))
    for _ in range(150):
        state = rng.uniform(-4, 4, 4)
        env.unwrapped.state = state[:2] if name == "Pendulum-v1" else state * [0.7, 1, 1, 1]
        env.unwrapped.last_u = rng.choice([None, 0.0, -2.0, 2.0, rng.uniform(-2, 2)])
        picture, _ = artist.draw(env.unwrapped)
        assert np.array_equal(picture, env.render())
    env.close()


def test_a_wrapped_environment_is_drawn_by_its_wrapper():
    wrapped = {"env": "CartPole-v1", "env_wrappers": ["gymnasium.wrappers:AddWhiteNoise"]}
    assert scene_of(make_environment({"env": "CartPole-v1"})) is not None
    assert scene_of(make_environment(wrapped)) is None
    assert scene_of(make_environment({"env": "FrozenLake-v1"})) is None


@pytest.mark.parametrize("name", IDS[1:])
def test_the_frames_of_a_film_are_those_of_gymnasium(tmp_path, name):
    environment = make_environment({"env": name, "max_steps": 60})
    made, cache = film(tmp_path / "c.npz", environment, range(5))
    env, frame = gymnasium.make(name, render_mode="rgb_array"), 0
    for number in range(5):
        _, actions, _ = made.episode(number)
        env.reset(seed=int(made.episodes.seed[number]))
        assert np.array_equal(cache[frame], env.render())
        for action in actions:
            env.step(environment.actions.taken(action))
            frame += 1
            assert np.array_equal(cache[frame], env.render())
        frame += 1
    assert frame == len(cache)
    env.close()


def test_a_picture_that_gymnasium_draws_otherwise_is_no_film(tmp_path, monkeypatch):
    def paler(surface, env):
        box = _SCENES["CartPole-v1"](surface, env)
        surface.fill((250, 250, 250), (10, 10, 2, 2))
        return box

    monkeypatch.setattr("goalreel.pictures.camera.scene_of", lambda environment: paler)
    with pytest.raises(GoalreelError, match="step 0: Gymnasium draws another picture when it play"):
        film(tmp_path / "c.npz", make_environment({"env": "CartPole-v1"}), range(2))


@pytest.mark.parametrize("size", SIZES)
def test_a_box_makes_the_same_groups_as_the_whole_picture(monkeypatch, size):
    monkeypatch.setattr("goalreel.pictures.blocks._MOST_PICTURES", 9)
    rng = np.random.default_rng(3)
    height, width = size
    frame = rng.integers(0, 256, (*size, 3), np.uint8)
    with_box, without = Recorder(), Recorder()
    box, groups = Box(0, 0, height, width), ([], [])
    for number in range(40):
        for recorder, told, part in zip((with_box, without), groups, (box, None), strict=True):
            told += filter(None, [recorder.add(frame, part)])
        top, left = int(rng.integers(height)), int(rng.integers(width))
        bottom, right = int(rng.integers(top, height)) + 1, int(rng.integers(left, width)) + 1
        box = Box(top, left, bottom, right)
        if number % 4:
            frame[top:bottom, left:right] = rng.integers(0, 2, 3)
    for told, recorder in zip(groups, (with_box, without), strict=True):
        told += recorder.rest()
    assert len(groups[0]) == len(groups[1]) == 5
    for (count, group), (wanted, other) in zip(*groups, strict=True):
        assert count == wanted and group.equals(other)
