"""Ids that make environments in wrappers of their own are played and drawn through them."""

# ruff: noqa: D101 - minimal wrappers

import gymnasium
import numpy as np
import pytest
from frames import film
from gymnasium.envs.registration import WrapperSpec
from gymnasium_frames import played

import goalreel
from goalreel.environments.environment import make_environment
from goalreel.environments.gymnasium_env import GymnasiumEnvironment
from goalreel.environments.gymnasium_instance import Instance
from goalreel.errors import GoalreelError


class Painted(gymnasium.Wrapper):
    """Paints a corner of the last frame."""

    over = False

    def reset(self, **options):
        self.over = False
        return self.env.reset(**options)

    def step(self, action):
        *given, terminated, truncated, info = self.env.step(action)
        self.over = terminated or truncated
        return *given, terminated, truncated, info

    def render(self):
        frame = np.array(self.env.render())
        frame[:9, :9] = 200 if self.over else frame[:9, :9]
        return frame


class Inverted(gymnasium.ObservationWrapper):
    def observation(self, observation):
        return 255 - observation


class Tenth(gymnasium.RewardWrapper):
    def reward(self, reward):
        return reward / 10


def wrapped(kind: type) -> WrapperSpec:
    return WrapperSpec(kind.__name__, f"{__name__}:{kind.__name__}", {})


LANDER = "gymnasium.envs.box2d.lunar_lander:LunarLander"
CART = "gymnasium.envs.classic_control:CartPoleEnv"
ONCE = {"max_episode_steps": 60}
gymnasium.register("PaintedLander-v0", LANDER, additional_wrappers=(wrapped(Painted),), **ONCE)
gymnasium.register("TenthCart-v0", CART, additional_wrappers=(wrapped(Tenth),), **ONCE)
gymnasium.register("InvertedRace-v0", lambda **kwargs: Inverted(race(**kwargs)))


def race(**kwargs):
    return gymnasium.make("CarRacing-v3", max_episode_steps=9, **kwargs)


def test_frames_are_those_of_the_wrappers_of_an_id(tmp_path):
    made, cache = film(tmp_path / "f.npz", make_environment({"env": "PaintedLander-v0"}), range(2))
    frames = iter(cache)
    for e, seed in enumerate(made.episodes.seed.tolist()):
        for picture in played("PaintedLander-v0", seed, made.episode(e)[1]):
            assert np.array_equal(picture, next(frames))
        assert picture[0, 0].tolist() == [200] * 3


def test_policy_sees_the_observations_of_the_wrappers_of_an_id():
    instance, peer = Instance(GymnasiumEnvironment("InvertedRace-v0"), 3), race()
    assert np.array_equal(instance.observation, 255 - peer.reset(seed=3)[0])


def test_film_of_an_environment_wraps_it_once(tmp_path):
    env = gymnasium.make("TenthCart-v0", render_mode="rgb_array")
    made = goalreel.film(env, "random", seeds=[3], to=tmp_path / "a.mp4").table
    assert made["return"].item() == pytest.approx(made["steps"].item() / 10)


@pytest.mark.parametrize(
    "make",
    [
        lambda: gymnasium.wrappers.TimeLimit(Tenth(gymnasium.make("Acrobot-v1")), 100),
        lambda: gymnasium.make("Acrobot-v1", max_episode_steps=-1),
    ],
)
def test_film_rejects_an_environment_that_it_cannot_make(make, tmp_path):
    with pytest.raises(GoalreelError, match="^env: It is .*which goalreel would make as .*Pass"):
        goalreel.film(make(), "random", seeds=[3], to=tmp_path / "a.mp4")
