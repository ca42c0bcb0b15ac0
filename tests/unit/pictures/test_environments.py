"""Of each kind of environment that people film, every cached frame is what `env.render()` draws."""

import importlib.util

import gymnasium
import numpy as np
import pytest
from frames import film

from goalreel.environments.environment import make_environment

# The package that brings the environment, "" for Gymnasium itself; and whether it takes its time.
ENVS = {
    "FrozenLake-v1": ("", False),
    "Pendulum-v1": ("", False),
    "LunarLander-v3": ("Box2D", False),
    "BipedalWalker-v3": ("Box2D", False),
    "CarRacing-v3": ("Box2D", True),
    "ALE/Breakout-v5": ("ale_py", False),
    "ALE/Pong-v5": ("ale_py", True),
    "MiniGrid-DoorKey-8x8-v0": ("minigrid", False),
}


@pytest.mark.parametrize(
    "env",
    [
        pytest.param(
            env,
            marks=[
                pytest.mark.skipif(
                    bool(package) and importlib.util.find_spec(package) is None,
                    reason=f"needs {package}: requirements-test.txt has it",
                ),
                *([pytest.mark.slow] if slow else []),
            ],
        )
        for env, (package, slow) in ENVS.items()
    ],
)
def test_every_frame_is_what_a_new_instance_draws(env, tmp_path):
    """Six episodes: the last ones could be played in instances that have played others."""
    environment = make_environment({"env": env, "max_steps": 30})
    made, cache = film(tmp_path / "f.npz", environment, range(6))
    frames = iter(cache)
    for e in range(6):
        peer = gymnasium.make(env, render_mode="rgb_array", max_episode_steps=30)
        peer.reset(seed=int(made.episodes.seed[e]))
        assert np.array_equal(peer.render(), next(frames))
        for t, action in enumerate(made.episode(e)[1]):
            peer.step(environment.actions.taken(action))
            assert np.array_equal(peer.render(), next(frames)), (e, t)
        peer.close()
    assert next(frames, None) is None
    size = (tmp_path / "f.npz").stat().st_size
    assert size < 0.05 * len(cache) * cache.background.nbytes
