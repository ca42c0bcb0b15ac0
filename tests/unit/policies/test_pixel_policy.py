"""A pixel network sees a game as in its training, and decides the same in any batch."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from pixel_policies import random_policy
from recordings import same_episodes

from goalreel.environments.environment import make_environment
from goalreel.policies.numpy_network import NumpyNetwork
from goalreel.policies.parameters import pixel_kwargs
from goalreel.policies.policy import make_policy
from goalreel.policies.preprocessing import WARPS
from goalreel.rendering.warped import with_network_view
from goalreel.simulation.episodes import simulate_episodes

CAR, BREAKOUT, FREEWAY = "MountainCar-v0", "ALE/Breakout-v5", "ALE/Freeway-v5"


class Watching:
    """A network that keeps its observations."""

    def __init__(self, network):
        self.network, self.stacks = network, []

    def act(self, stacks):
        self.stacks += list(stacks)
        return self.network.act(stacks)


def played(path, seeds, step_limits=None, **config):
    """Return the policy, its episodes, and its observations."""
    policy = make_policy({"name": "pixels", "file": path, "checkpoint": "best"})
    environment = with_network_view(make_environment(config), policy.warp)
    policy = replace(policy, network=Watching(policy.network))
    policy.check(environment)
    episodes = simulate_episodes(np.array(seeds), environment, policy, step_limits)
    return policy, episodes, policy.network.stacks


@pytest.mark.parametrize(("game", "actions", "fire"), [(BREAKOUT, 4, 1), (FREEWAY, 3, 0)])
def test_pixel_policy_observes_atari_vector_env_frames(game, actions, fire, tmp_path):
    vector_env = pytest.importorskip("ale_py.vector_env", reason="needs ale-py")
    path = random_policy(tmp_path / "p.npz", game, actions)
    theirs = vector_env.AtariVectorEnv(game[4:-3].lower(), 1, num_threads=1, reward_clipping=False)
    obs, info = theirs.reset(seed=3)
    begun = int(info["episode_frame_number"][0])  # frames of FIRE and of no-ops
    policy = make_policy({"name": "pixels", "file": path})
    starts = [max(game.noops, fire) for game in policy.generators(np.arange(100))]
    seed = starts.index(begun)
    steps = begun + 4 * 150
    kwargs = {"env_kwargs": pixel_kwargs("ALE/"), "max_episode_steps": steps}
    policy, episodes, stacks = played(path, [seed], env=game, **kwargs)
    chosen = episodes[0].actions
    assert chosen[:begun].tolist() == [1] * fire + [0] * (begun - fire)
    decisions = chosen[begun:].reshape(-1, 4)
    assert (decisions == decisions[:, :1]).all() and len(np.unique(decisions)) > 1
    assert len(stacks) == len(decisions) == 150
    rewards = []
    for number, (stack, action) in enumerate(zip(stacks, decisions[:, 0], strict=True)):
        assert np.array_equal(stack[3], obs[0, 3]), number
        assert np.array_equal(stack[:3], stacks[number - 1][1:] if number else stack[1:])
        assert number < 3 or np.array_equal(stack, obs[0])
        obs, reward, terminated, *_ = theirs.step(np.array([action]))
        rewards.append(reward[0])
        assert not terminated
    assert rewards == episodes[0].rewards[begun:].reshape(-1, 4).sum(axis=1).tolist()
    theirs.close()


def test_games_start_with_no_ops_of_ale_py(tmp_path):
    path = random_policy(tmp_path / "p.npz", FREEWAY, 3)
    policy = make_policy({"name": "pixels", "file": path})
    noops = np.array([game.noops for game in policy.generators(np.arange(3000))])
    assert np.bincount(noops, minlength=30).min() > 60 and noops.max() == 29  # of 100 each


@pytest.mark.parametrize("skip", [1, 4])
def test_pixel_policy_observes_gymnasium_car(skip, tmp_path):
    path = random_policy(tmp_path / "p.npz", CAR, 3, frame_skip=skip)
    policy, episodes, stacks = played(path, [5], env=CAR, max_episode_steps=33)
    env = gymnasium.make(CAR, render_mode="rgb_array")
    env.reset(seed=5)
    seen = [WARPS[policy.warp](env.render())] * 4
    in_float64 = NumpyNetwork(policy.network.network.weights, np.float64)
    for step, action in enumerate(episodes[0].actions.tolist()):
        if step % skip == 0:
            if step:
                seen = [*seen[1:], WARPS[policy.warp](env.render())]
            assert np.array_equal(stacks[step // skip], np.stack(seen))
            expected = int(np.argmax(in_float64.values(np.stack(seen)[None])))
        assert action == expected
        env.step(action)
    assert len(stacks) == -(-33 // skip)


@pytest.mark.parametrize(
    ("game", "actions", "config"),
    [
        (CAR, 3, {"max_episode_steps": 60}),
        (BREAKOUT, 4, {"env_kwargs": pixel_kwargs("ALE/"), "max_episode_steps": 60}),
    ],
)
def test_pixel_policy_episode_does_not_depend_on_batch(game, actions, config, tmp_path):
    if game == BREAKOUT:
        pytest.importorskip("ale_py", reason="needs ale-py")
    path = random_policy(tmp_path / "p.npz", game, actions)
    limits = np.array([45, 60, 52])
    _, together, _ = played(path, [1, 2, 3], limits, env=game, **config)
    assert [len(episode.actions) for episode in together] == limits.tolist()
    for place, seed in enumerate((1, 2, 3)):
        _, alone, _ = played(path, [seed], limits[place : place + 1], env=game, **config)
        assert same_episodes(alone, together[place : place + 1])
    assert len({episode.actions[:45].tobytes() for episode in together}) > 1
