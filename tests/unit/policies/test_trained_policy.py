"""A network sees what it saw in its training, and decides the same in any batch."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from message_form import check_form
from PIL import Image
from recordings import same_episodes
from trained_policies import random_policy, random_weights

from goalreel.environments.environment import make_environment
from goalreel.errors import OptionError
from goalreel.films.scene import Scene
from goalreel.policies.network_file import read_checkpoints
from goalreel.policies.numpy_network import NumpyNetwork
from goalreel.policies.parameters import pixel_kwargs
from goalreel.policies.policy import make_policy
from goalreel.policies.preprocessing import WARPS, halve, paint_mark
from goalreel.simulation.episodes import simulate_episodes

CAR, BREAKOUT, FREEWAY = "MountainCar-v0", "ALE/Breakout-v5", "ALE/Freeway-v5"


class Watching:
    """Actions of a network whose observations are kept."""

    def __init__(self, act):
        self.act, self.stacks = act, []

    def __call__(self, stacks):
        self.stacks += list(stacks)
        return self.act(stacks)


def played(path, seeds, step_limits=None, **config):
    """Return the policy, its episodes, and its observations."""
    policy = make_policy({"name": "trained", "file": path, "checkpoint": "best"})
    environment = Scene(make_environment(config), None).with_policy(policy).env
    policy = replace(policy, decide=Watching(policy.decide))
    policy.check(environment)
    episodes = simulate_episodes(np.array(seeds), environment, policy, step_limits)
    return policy, episodes, policy.decide.stacks


@pytest.mark.parametrize(
    ("game", "actions", "fire", "background"),
    [(BREAKOUT, 4, 1, None), (FREEWAY, 3, 0, None), (BREAKOUT, 4, 1, 30)],
)
def test_trained_policy_observes_atari_vector_env_frames(game, actions, fire, background, tmp_path):
    vector_env = pytest.importorskip("ale_py.vector_env", reason="needs ale-py")
    view = {"background": background, "obs_shape": [4, *[84 if background is None else 42] * 2]}
    path = random_policy(tmp_path / "p.npz", game, actions, **view)
    theirs = vector_env.AtariVectorEnv(game[4:-3].lower(), 1, num_threads=1, reward_clipping=False)
    obs, info = theirs.reset(seed=3)
    begun = int(info["episode_frame_number"][0])  # frames of FIRE and of no-ops
    policy = make_policy({"name": "trained", "file": path})
    starts = [max(game.noops, fire) for game in policy.generators(np.arange(100))]
    seed = starts.index(begun)
    steps = begun + 4 * 150
    exact = pixel_kwargs("ALE/") | {"repeat_action_probability": 0.0}
    kwargs = {"env_kwargs": exact, "max_episode_steps": steps}
    policy, episodes, stacks = played(path, [seed], env=game, **kwargs)
    chosen = episodes[0].actions
    assert chosen[:begun].tolist() == [1] * fire + [0] * (begun - fire)
    decisions = chosen[begun:].reshape(-1, 4)
    assert (decisions == decisions[:, :1]).all() and len(np.unique(decisions)) > 1
    assert len(stacks) == len(decisions) == 150
    rewards = []
    for number, (stack, action) in enumerate(zip(stacks, decisions[:, 0], strict=True)):
        seen = obs[0] if background is None else halve(obs[0], background)
        assert np.array_equal(stack[3], seen[3]), number
        assert np.array_equal(stack[:3], stacks[number - 1][1:] if number else stack[1:])
        assert number < 3 or np.array_equal(stack, seen)
        obs, reward, terminated, *_ = theirs.step(np.array([action]))
        rewards.append(reward[0])
        assert not terminated
    assert rewards == episodes[0].rewards[begun:].reshape(-1, 4).sum(axis=1).tolist()
    theirs.close()


def test_games_start_with_no_ops_of_ale_py(tmp_path):
    path = random_policy(tmp_path / "p.npz", FREEWAY, 3)
    policy = make_policy({"name": "trained", "file": path})
    noops = np.array([game.noops for game in policy.generators(np.arange(3000))])
    assert np.bincount(noops, minlength=30).min() > 60 and noops.max() == 29  # of 100 each


@pytest.mark.parametrize("skip", [1, 4])
def test_trained_policy_observes_gymnasium_car(skip, tmp_path):
    path = random_policy(tmp_path / "p.npz", CAR, 3, frame_skip=skip)
    policy, episodes, stacks = played(path, [5], env=CAR, max_episode_steps=33)
    env = gymnasium.make(CAR, render_mode="rgb_array")
    env.reset(seed=5)
    seen = [WARPS[policy.warp](env.render())] * 4
    in_float64 = NumpyNetwork(read_checkpoints(path).weights[-1], np.float64, (4, 2, 1))
    for step, action in enumerate(episodes[0].actions.tolist()):
        if step % skip == 0:
            if step:
                seen = [*seen[1:], WARPS[policy.warp](env.render())]
            assert np.array_equal(stacks[step // skip], np.stack(seen))
            expected = int(np.argmax(in_float64.evaluate(np.stack(seen)[None])[0]))
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
def test_trained_policy_episode_does_not_depend_on_batch(game, actions, config, tmp_path):
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


@pytest.mark.parametrize(
    ("env", "inputs", "actions"),
    [(CAR, 2, 3), ("CartPole-v1", 4, 2), ("FrozenLake-v1", 16, 4), ("Blackjack-v1", 45, 2)],
)
def test_trained_policy_flattens_states_as_gymnasium(env, inputs, actions, tmp_path):
    path = random_policy(tmp_path / "p.npz", env, actions, inputs, frame_skip=2)
    policy, episodes, states = played(path, range(5), env=env)
    network = NumpyNetwork(read_checkpoints(path).weights[-1], np.float64)
    peer, seen = gymnasium.make(env), 0
    for seed, episode in enumerate(episodes):
        state, _ = peer.reset(seed=seed)
        for step, action in enumerate(episode.actions.tolist()):
            if step % 2 == 0:
                flat = gymnasium.spaces.flatten(peer.observation_space, state).astype(np.float64)
                assert any(np.array_equal(flat, other) for other in states)
                expected, seen = int(network.evaluate(flat[None])[0].argmax()), seen + 1
            assert action == expected
            state, *_ = peer.step(action)
    assert seen == len(states)


def test_half_frames_keep_what_differs_most_from_the_background():
    frames = np.random.default_rng(0).integers(0, 256, (2, 84, 84), np.uint8)
    halves = halve(frames, 100)
    for place in np.ndindex(2, 42, 42):
        block = frames[place[0], 2 * place[1] :, 2 * place[2] :][:2, :2].reshape(-1).astype(int)
        kept = int(halves[place])
        assert kept in block and abs(kept - 100) == np.abs(block - 100).max()


def test_marks_show_the_action_before():
    picture = np.full((84, 84), 9, np.uint8)
    marked = paint_mark(picture, 2, 7)
    assert (marked[8:] == 9).all() and (marked[:8, 24:36] == 255).all()
    assert marked[:8].sum() == 255 * 8 * 12


@pytest.mark.parametrize(("most_blue", "other"), [(256, 2), (128, 0)])
def test_mario_warp_averages_green_and_blue_or_red(most_blue, other):
    screen = np.random.default_rng(0).integers(0, 256, (224, 240, 3), np.uint8)
    screen[..., 2] = np.maximum(screen[..., 2], 128) if most_blue == 256 else screen[..., 2] // 2
    mean = (screen[32:, :, 1].astype(int) + screen[32:, :, other]) // 2
    resized = Image.fromarray(mean.astype(np.uint8)).resize((84, 84), Image.Resampling.BOX)
    assert np.array_equal(WARPS["mario"](screen), np.asarray(resized))


@pytest.mark.parametrize(
    ("env", "changes", "message"),
    [
        ("CartPole-v1", {"actions": 3}, "has 3 actions, but CartPole-v1 takes"),
        ("CartPole-v1", {"obs_shape": [6]}, "takes 6 numbers, but CartPole-v1 shows 4"),
        ("Pendulum-v1", {}, "has 2 actions, but Pendulum-v1 takes floats"),
    ],
)
def test_trained_policy_rejects_other_environments(env, changes, message, tmp_path):
    path = random_policy(tmp_path / "p.npz", env, changes.pop("actions", 2), 4, **changes)
    policy = make_policy({"name": "trained", "file": path})
    with pytest.raises(OptionError, match=message) as caught:
        policy.check(make_environment({"env": env}))
    check_form(str(caught.value))


def test_own_network_plays_one_state_at_a_time(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    (tmp_path / "own_net.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    weights = {"body.0.weight": np.eye(4, dtype=np.float32), "body.0.bias": np.zeros(4, np.float32)}
    weights |= random_weights(3, seed=2, inputs=4, hidden=())
    settings = {"module": "own_net:make", "obs_shape": [4], "bounds": [[-2.0] * 4, [2.0] * 4]}
    states = np.random.default_rng(3).normal(0, 1, (20, 4))
    hidden = np.maximum(states / 2, 0)
    expected = hidden @ weights["dense0.weight"].T + weights["dense0.bias"]
    from goalreel.policies.torch_network import OwnNetwork

    network = OwnNetwork(weights, settings)
    assert network.decide(states)[0].tolist() == expected.argmax(axis=1).tolist()
    assert torch.get_num_threads() == 1


OWN = """
from torch import nn
def make(shape):
    return nn.Sequential(nn.Linear(shape[0], 4), nn.ReLU())
"""


def test_gray_pictures_with_a_channel_are_those_without():
    gray = np.random.default_rng(1).integers(0, 256, (96, 80), np.uint8)
    assert np.array_equal(WARPS["pillow"](gray[..., None]), WARPS["pillow"](gray))
