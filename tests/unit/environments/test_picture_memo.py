"""What was drawn before is what `env.render()` would draw again."""

import gymnasium
import numpy as np
import pytest

from goalreel.environments import picture_memo
from goalreel.environments.gymnasium_env import GymnasiumEnvironment

CASES = {
    "FrozenLake-v1": {"desc": None, "map_name": "8x8"},
    "CliffWalking-v1": {},
    "Taxi-v4": {},
    "minigrid:MiniGrid-DoorKey-8x8-v0": {},
    "minigrid:MiniGrid-Dynamic-Obstacles-8x8-v0": {},
    "minigrid:MiniGrid-ObstructedMaze-2Dlhb-v1": {},
    "minigrid:BabyAI-GoToRedBall-v0": {},
}


@pytest.mark.parametrize("name", CASES)
def test_every_picture_is_the_one_that_is_drawn(name, monkeypatch):
    if ":" in name:
        pytest.importorskip("minigrid")
    monkeypatch.setattr(picture_memo, "_MOST", 8 << 20)  # pictures are forgotten, and drawn anew
    environment = GymnasiumEnvironment(name, CASES[name], max_steps=120)
    envs, taken = [environment.make() for _ in range(2)], 0
    for seed in range(3):
        for env in envs:  # in turns, as lanes are
            env.reset(seed=seed)
            env.action_space.seed(seed)
        going = list(envs)
        while going:
            for env in tuple(going):
                # Before Gymnasium draws it, and so moves what only drawing moves.
                picture = environment.picture(env)
                if taken % 4 == 0:
                    assert np.array_equal(picture, env.render())
                taken += 1
                *_, terminated, truncated, _ = env.step(env.action_space.sample())
                if terminated or truncated:
                    going.remove(env)
    assert taken > 40
    for env in envs:
        env.close()


def test_others_are_drawn_each_time():
    """Those with a user's wrapper, and those of which it is not known what tells their pictures."""
    wrapped = ({"gymnasium.wrappers:TimeAwareObservation": {}},)
    for environment in (
        GymnasiumEnvironment("FrozenLake-v1", wrappers=wrapped),
        GymnasiumEnvironment("Blackjack-v1"),
    ):
        env = environment.make()
        env.reset(seed=1)
        assert np.array_equal(environment.picture(env), env.render())
        assert environment.pool.memo._pictures == {}
        env.close()


def test_a_subclass_elsewhere_is_not_taken_for_its_base():
    minigrid = pytest.importorskip("minigrid.minigrid_env")
    pytest.importorskip("minigrid")
    env = gymnasium.make("minigrid:MiniGrid-Empty-5x5-v0")
    kind = type(env.unwrapped)
    assert picture_memo._key_of(env) is picture_memo._minigrid
    another = type("Another", (kind,), {"__module__": "another", "render": lambda self: None})
    assert picture_memo._key_of(another(render_mode="rgb_array")) is None
    assert issubclass(another, minigrid.MiniGridEnv)
