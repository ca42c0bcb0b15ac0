"""Fast reloading of an Atari game for a seed gives the game that Gymnasium loads."""

import json

import gymnasium
import numpy as np
import pytest

from goalreel.environments.gymnasium_env import GymnasiumEnvironment

ale_py = pytest.importorskip("ale_py")
SEEDS = [7, 0, 2**31, 12345678901, 7]
GAMES = [
    ("ALE/Pong-v5", {}),
    ("ALE/Breakout-v5", {"mode": 4, "difficulty": 1, "frameskip": (2, 5)}),
    ("ALE/SpaceInvaders-v5", {"frameskip": 1, "repeat_action_probability": 0.5}),
    *(
        pytest.param(f"ALE/{game}-v5", {}, marks=pytest.mark.slow)
        for game in ("MontezumaRevenge", "Pitfall", "MsPacman", "Seaquest", "Freeway", "Enduro")
    ),
]


@pytest.fixture
def loads(monkeypatch):
    """Return a list that records every load of a game."""
    made, whole = [], ale_py.AtariEnv.load_game
    monkeypatch.setattr(ale_py.AtariEnv, "load_game", lambda env: (made.append(env), whole(env))[1])
    return made


def play(env, seed: int) -> list:
    """Return everything that an episode returns, with every tenth frame."""
    env.action_space.seed(seed)
    obs, info = env.reset(seed=seed)
    given = [obs, info["seeds"], info["lives"], env.render()]
    for step in range(150):
        obs, reward, terminated, truncated, info = env.step(env.action_space.sample())
        given += [obs, reward, terminated, truncated, tuple(info.values())]
        given += [env.render()] if step % 10 == 0 else []
    given.append(env.unwrapped.ale.cloneSystemState().serialize())
    return given


@pytest.mark.parametrize(("name", "kwargs"), GAMES)
def test_seeds_start_as_in_gymnasium(loads, name, kwargs):
    """Two instances take turns; a third is made after they have played."""
    environment = GymnasiumEnvironment(name, json.loads(json.dumps(kwargs)))  # lists as in YAML
    peer = gymnasium.make(name, render_mode="rgb_array", **kwargs)
    envs = [environment.make(), environment.make()]
    expected = {seed: play(peer, seed) for seed in set(SEEDS)}
    before = len(loads)
    for seed in SEEDS:
        for env in envs:
            same = zip(play(env, seed), expected[seed], strict=True)
            assert all(np.array_equal(ours, theirs) for ours, theirs in same), seed
    late = environment.make()
    assert all(map(np.array_equal, play(late, 7), expected[7]))
    assert len(loads) == before + 1  # that of `late`
    for env in (*envs, late, peer):
        env.close()


def test_used_instance_sounds_as_in_gymnasium():
    kwargs = {"sound_obs": True}
    environment = GymnasiumEnvironment("ALE/Breakout-v5", kwargs)
    peer = gymnasium.make("ALE/Breakout-v5", render_mode="rgb_array", **kwargs)
    envs = [environment.make(), environment.make()]
    for seed in (5, 6, 5):
        for env in (*envs, peer):
            env.action_space.seed(seed)
        heard = [[env.reset(seed=seed)[0]["sound"]] for env in (*envs, peer)]
        for _ in range(40):
            for env, sounds in zip((*envs, peer), heard, strict=True):
                sounds.append(env.step(env.action_space.sample())[0]["sound"])
        assert np.array_equal(heard[0], heard[2]) and np.array_equal(heard[1], heard[2])
