"""BipedalWalker's scene draws the frames that `env.render()` returns, wherever a walker goes."""

import numpy as np
import pytest
from gymnasium.envs.box2d.bipedal_walker import BipedalWalkerHeuristics

from goalreel.environments.drawing.block_store import BlockFrame
from goalreel.environments.gymnasium_env import GymnasiumEnvironment

BACKWARDS = np.array([-1.0, -1.0, 0.2, 1.0], np.float32)


def walks(env, seed: int):
    """Return a function from an observation to an action: walk, move at random, or go back."""
    heuristics, rng = BipedalWalkerHeuristics(), np.random.default_rng(seed)
    return (
        lambda obs: np.asarray(heuristics.step_heuristic(obs), np.float32),
        lambda obs: env.action_space.sample(),
        lambda obs: (BACKWARDS * rng.uniform(0.2, 1, 4)).astype(np.float32),
    )[seed % 3]


@pytest.mark.parametrize(
    ("env_id", "episodes"),
    [
        ("BipedalWalker-v3", 3),
        ("BipedalWalkerHardcore-v3", 3),
        pytest.param("BipedalWalker-v3", 50, marks=pytest.mark.slow),
        pytest.param("BipedalWalkerHardcore-v3", 50, marks=pytest.mark.slow),
    ],
)
def test_bipedal_walker_frames_equal_env_render(env_id, episodes):
    environment = GymnasiumEnvironment(env_id)
    env, peer = environment.make(), environment.make()
    scrolls = []
    for seed in range(episodes):
        obs, _ = env.reset(seed=seed)
        peer.reset(seed=seed)
        env.action_space.seed(seed)
        act, over, steps = walks(env, seed), False, 0
        while not over and (steps < 40 or episodes > 3):
            frame = environment.frame(env, obs)
            assert isinstance(frame, BlockFrame)
            assert np.array_equal(frame.image(), peer.render()), (seed, steps)
            scrolls.append(env.unwrapped.scroll)
            obs, _, *ends, _ = env.step(action := act(obs))
            peer.step(action)
            over, steps = any(ends), steps + 1
    assert episodes == 3 or (min(scrolls) < 0 and max(scrolls) > 10)


def test_low_clouds_are_rendered_by_gymnasium():
    environment = GymnasiumEnvironment("BipedalWalker-v3")
    env, peer = environment.make(), environment.make()
    for one in (env, peer):
        one.reset(seed=1)
        one.unwrapped.cloud_poly = [
            ([(x, y - 8) for x, y in points], *ends) for points, *ends in one.unwrapped.cloud_poly
        ]
    frames = [environment.frame(env, None), peer.render()]
    assert np.array_equal(*frames) and not isinstance(frames[0], BlockFrame)


def test_bipedal_walker_pit_at_the_border_equals_env_render():
    environment = GymnasiumEnvironment("BipedalWalkerHardcore-v3")
    env, peer = environment.make(), environment.make()
    obs, _ = env.reset(seed=2)
    peer.reset(seed=2)
    for scroll in (47.5, 47.6, 47.7, 84.6, -0.5):
        env.unwrapped.scroll = peer.unwrapped.scroll = scroll
        env.unwrapped.lidar_render = peer.unwrapped.lidar_render = 50  # no lidar
        assert np.array_equal(environment.frame(env, obs).image(), peer.render()), scroll
