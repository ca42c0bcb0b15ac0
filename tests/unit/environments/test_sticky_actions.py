"""`sticky_actions` repeats the actions that ALE, Super Mario Bros or Gymnasium's wrapper repeats."""

import importlib.util

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import StickyAction
from message_form import rejection

from goalreel.environments.environment import make_environment
from goalreel.workflow.config import load_config

PONG, MARIO, CART = "ALE/Pong-v5", "SuperMarioBros-1-1-v0", "CartPole-v1"
REPEAT = {"repeat_action_probability": 0.4}


def rows(env) -> list:
    """Return the observations, rewards and ends of an episode with random actions."""
    rng, found, over = np.random.default_rng(1), [env.reset(seed=3)[0]], False
    while not over and len(found) < 120:
        obs, reward, terminated, truncated, _ = env.step(rng.integers(env.action_space.n))
        over = terminated or truncated
        found.append(np.append(obs, [reward, over]))
    return found


@pytest.mark.parametrize("env", [CART, PONG, MARIO])
def test_sticky_actions_play_as_in_the_peer(env):
    if env != CART:
        pytest.importorskip("ale_py" if env == PONG else "stable_retro")
    config = load_config({"env": env, "sticky_actions": 0.4})
    sticky = rows(make_environment(config).make())
    if env == CART:
        peer = StickyAction(gymnasium.make(env), **REPEAT)
    else:
        peer = gymnasium.make(env, **REPEAT)
    for one, other in zip(sticky, rows(peer), strict=True):
        assert np.array_equal(one, other)
    never = load_config({"env": env, "sticky_actions": 0})
    assert not np.array_equal(sticky[-1], rows(make_environment(never).make())[-1])


@pytest.mark.skipif(importlib.util.find_spec("ale_py") is None, reason="needs ale-py")
def test_sticky_actions_of_older_ids_are_those_of_the_emulator():
    env = make_environment(load_config({"env": "Pong-v0", "sticky_actions": 0})).make()
    assert env.unwrapped.ale.getFloat("repeat_action_probability") == 0


def test_sticky_wrapper_is_outermost_and_the_option_is_gone():
    wrapper = "gymnasium.wrappers:TimeAwareObservation"
    config = load_config({"env": CART, "env_wrappers": [wrapper], "sticky_actions": 0.4})
    assert config["env_wrappers"] == [{wrapper: {}}, {"gymnasium.wrappers:StickyAction": REPEAT}]
    assert config["sticky_actions"] is None


@pytest.mark.skipif(importlib.util.find_spec("ale_py") is None, reason="needs ale-py")
def test_sticky_actions_given_twice_are_rejected():
    message = rejection({"env": PONG, "env_kwargs": REPEAT, "sticky_actions": 0.25})
    assert message.startswith("sticky_actions: Also set by env_kwargs.repeat_action_probability.")


def test_sticky_wrapper_and_option_are_rejected():
    given = {"env": CART, "env_wrappers": [{"gymnasium.wrappers:StickyAction": REPEAT}]}
    message = rejection(given | {"sticky_actions": 0})
    assert message.startswith("sticky_actions: Also set by StickyAction in env_wrappers.")
    assert "'1' is not allowed for" in rejection({"env": CART, "sticky_actions": 1})
