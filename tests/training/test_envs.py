"""Training plays what Gymnasium plays: observations, rewards and ends of all kinds of tasks."""

import importlib.util
import itertools
import random
from dataclasses import replace

import gymnasium
import numpy as np
import pytest

pytest.importorskip("torch", reason="takes PyTorch, which is no requirement")

from trained_policies import random_policy  # noqa: E402

from goalreel.environments.environment import make_environment  # noqa: E402
from goalreel.environments.mario import MarioEnv  # noqa: E402
from goalreel.errors import GoalreelError  # noqa: E402
from goalreel.policies.policy import make_policy  # noqa: E402
from goalreel.policies.preprocessing import WARPS, finish, halve  # noqa: E402
from goalreel.simulation.episodes import simulate_episodes  # noqa: E402
from goalreel.training.envs import episode_seeds  # noqa: E402
from goalreel.training.mario_envs import search  # noqa: E402
from goalreel.training.settings import Settings, with_defaults  # noqa: E402
from goalreel.training.tasks import make_envs, make_task  # noqa: E402
from goalreel.workflow.config import load_config  # noqa: E402

CAR = "MountainCar-v0"
NEEDS_ALE = pytest.mark.skipif(importlib.util.find_spec("ale_py") is None, reason="takes ale-py")
NEEDS_MARIO = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("stable_retro", "gym_super_mario_bros"))),
    reason="takes stable-retro and the ROM of gym-super-mario-bros",
)


def made(env: str, indices: range, kwargs=None, wrappers=(), **options):
    """Return a task, and its environments of some indices from the seed 7."""
    section = with_defaults(load_config({})["train"] | options, env)
    config = {"env": env, "env_kwargs": kwargs or {}, "env_wrappers": wrappers, "train": section}
    task = make_task(config, Settings(**section))
    return task, make_envs(task, Settings(**section), 7, indices)


@pytest.mark.parametrize(
    ("env", "kwargs", "wrappers"),
    [
        (CAR, {}, ()),
        ("FrozenLake-v1", {"is_slippery": False}, ()),
        ("Blackjack-v1", {}, ()),
        ("CartPole-v1", {}, ["gymnasium.wrappers:TimeAwareObservation"]),
    ],
)
@pytest.mark.parametrize("frame_skip", [1, 3])
def test_states_rewards_and_ends_are_gymnasiums(env, kwargs, wrappers, frame_skip):
    task, envs = made(env, range(1, 4), kwargs, wrappers, frame_skip=frame_skip)
    flatten, rng = gymnasium.spaces.flatten, np.random.default_rng(0)
    theirs = [gymnasium.make(env, **kwargs) for _ in range(3)]
    if wrappers:
        theirs = [gymnasium.wrappers.TimeAwareObservation(one) for one in theirs]
    space, seeds = theirs[0].observation_space, [episode_seeds(7, n) for n in range(1, 4)]
    pairs = zip(theirs, seeds, strict=True)
    seen = [flatten(space, one.reset(seed=next(own))[0]) for one, own in pairs]
    returns, ended = np.zeros(3), 0
    assert envs.obs.shape == (3, *task.shape)
    for _ in range(300):
        assert np.array_equal(envs.obs, np.stack(seen).astype(np.float32))
        actions = rng.integers(task.num_actions, size=3)
        step = envs.step(actions)
        for n, one in enumerate(theirs):
            total, over = 0.0, (False, False)
            for _ in range(frame_skip):
                obs, reward, *over, _ = one.step(int(actions[n]))
                total += reward
                if any(over):
                    break
            returns[n] += total
            assert step.rewards[n] == np.float32(total)
            assert [step.terminated[n], step.truncated[n]] == over
            assert np.array_equal(step.next_obs[n], flatten(space, obs).astype(np.float32))
            if any(over):
                (game,) = [game for game in step.ended if game.index == n]
                assert game.return_ == returns[n]
                returns[n], ended = 0.0, ended + 1
                obs = one.reset(seed=next(seeds[n]))[0]
            seen[n] = flatten(space, obs)
    envs.close()
    assert ended > (0 if env == CAR else 3)


@pytest.mark.parametrize("frame_skip", [1, 12])
def test_frames_of_mountain_car_are_gymnasiums(frame_skip):
    """Stacks hold the resized frames of `render()`, and begin again with each episode."""
    _, envs = made(CAR, range(2), pixels=True, frame_skip=frame_skip)
    seeds = [episode_seeds(7, n) for n in range(2)]
    theirs = [gymnasium.make(CAR, render_mode="rgb_array") for _ in range(2)]
    states = [one.reset(seed=next(own))[0] for one, own in zip(theirs, seeds, strict=True)]
    stacks = [np.repeat(WARPS["pillow"](one.render())[None], 4, 0) for one in theirs]
    ended = 0
    for number in range(420 // frame_skip):
        assert np.array_equal(envs.obs, np.stack(stacks))
        actions = np.array([0 if state[1] < 0 else 2 for state in states])
        actions[1] = number % 3  # never arrives
        step = envs.step(actions)
        assert (step.rewards == -1).all()
        for n, one in enumerate(theirs):
            for _ in range(frame_skip):
                states[n], _, *over, _ = one.step(int(actions[n]))
                if any(over):
                    break
            assert [step.terminated[n], step.truncated[n]] == over
            frame = WARPS["pillow"](one.render())
            stacks[n] = np.concatenate([stacks[n][1:], frame[None]])
            assert np.array_equal(step.next_obs[n], stacks[n])
            if any(over):
                (game,) = [game for game in step.ended if game.index == n]
                assert (game.success, game.distance >= 0.5) == (float(over[0]), over[0])
                states[n], ended = one.reset(seed=next(seeds[n]))[0], ended + 1
                stacks[n] = np.repeat(WARPS["pillow"](one.render())[None], 4, 0)
    assert ended >= 3


@NEEDS_ALE
def test_frames_of_atari_are_those_of_gymnasiums_wrapper():
    """A learner sees clipped rewards, lost lives and stacks of Gymnasium's AtariPreprocessing."""
    kwargs = {"repeat_action_probability": 0.0}
    task, envs = made("ALE/Breakout-v5", range(2), kwargs, screen_size=84)
    half, halves = made("ALE/Breakout-v5", range(2), kwargs)
    assert envs.obs.shape == (2, 4, 84, 84) and task.num_actions == 4
    assert halves.obs.shape == (2, *half.shape) == (2, 4, 42, 42)
    assert half.preprocessing["background"] == (task.low + task.high) / 2
    rng, ended, lost = np.random.default_rng(1), [], np.zeros(2)
    while len(ended) < 2:
        before = envs.obs
        actions = rng.integers(4, size=2)
        step, smaller = envs.step(actions), halves.step(actions)
        for frames, small in ((envs.obs, halves.obs), (step.next_obs, smaller.next_obs)):
            assert np.array_equal(halve(frames, half.preprocessing["background"]), small)
        assert set(step.rewards) <= {0.0, 1.0}
        assert np.array_equal(step.next_obs[:, :-1], before[:, 1:])
        lost += step.terminated
        for n in range(2):  # the first frame of a game fills the stack, as in a film, not of a life
            is_new = n in [game.index for game in step.ended]
            first = np.broadcast_to(envs.obs[n, -1], envs.obs[n].shape)
            assert np.array_equal(envs.obs[n], first if is_new else step.next_obs[n])
        for game in step.ended:
            assert lost[game.index] >= 5 and game.return_ >= 0
            lost[game.index] = 0
        ended += step.ended
    envs.close()


@NEEDS_ALE
def test_atari_repeats_actions_as_its_id_says():
    """ALE/Pong-v5 has sticky actions, and env_kwargs can switch them off."""
    played = []
    for kwargs in ({}, {"repeat_action_probability": 0.25}, {"repeat_action_probability": 0.0}):
        _, envs = made("ALE/Pong-v5", range(1), kwargs)
        rng = np.random.default_rng(0)
        played.append([envs.step(rng.integers(6, size=1)).next_obs for _ in range(40)])
        envs.close()
    default, sticky, plain = (np.concatenate(frames) for frames in played)
    assert np.array_equal(default, sticky) and not np.array_equal(default, plain)


@NEEDS_MARIO
def test_mario_training_begins_where_it_fails():
    _, envs = made("SuperMarioBros-1-1-v0", range(8))
    assert envs.obs.shape == (8, 4, 42, 42)
    positions = [game.env.x_pos for game in envs._games]
    assert len(set(positions)) > 3 and max(positions) > 1000
    _, plain = made("SuperMarioBros-1-1-v0", range(8), starts="reset")
    assert {game.env.x_pos for game in plain._games} == {40}
    for actions in itertools.repeat(np.full(8, 3), 60):
        step = plain.step(actions)
        for game in step.ended:
            assert not game.success and 40 < game.distance < 3161


@NEEDS_MARIO
@pytest.mark.parametrize("level", ["1-1", "1-2", "1-3", "1-4"])
def test_networks_see_mario_by_day_and_in_caves(level):
    env = f"SuperMarioBros-{level}-v0"
    task, _ = made(env, range(1), starts="reset")
    game = MarioEnv(env, obs_type="ram", repeat_action_probability=0.0)
    game.reset(seed=0)
    game.advance(1, 48)
    memory = game.step(1)[0]
    x, y = int(memory[0x3AD]) * 42 // 240, (int(memory[0x3B8]) - 24) * 42 // 192  # on the screen
    frame = finish(WARPS["mario"](game.render()), {**task.preprocessing, "marks": False}, 0, 7)
    seen = (frame.astype(float) - task.low) / (task.high - task.low) * 2 - 1  # as by the network
    assert np.abs(seen[y + 1 : y + 3, x : x + 2]).mean() > 0.8
    assert np.abs(seen[y - 4 : y - 1, x : x + 2]).max() < 0.1  # nothing above him


@NEEDS_MARIO
@pytest.mark.slow
def test_search_finds_a_way_over_lifts():
    env = MarioEnv("SuperMarioBros-1-3-v0", obs_type="ram", repeat_action_probability=0.0)
    path = search(env, random.Random(1), 4)  # noqa: S311 - no secrets
    env.reset(seed=0)
    env.advance(0)
    for action in path:
        _, over = env.advance(action, 4)
    assert over and env.flag_get


@NEEDS_MARIO
def test_films_of_mario_show_what_a_training_sees(tmp_path):
    env, kwargs = "SuperMarioBros-1-1-v0", {"repeat_action_probability": 0.0}
    task, envs = made(env, range(1), kwargs, starts="reset")
    view = {"background": task.preprocessing["background"], "obs_shape": [4, 42, 42]}
    path = random_policy(tmp_path / "a.npz", env, 7, **view)
    policy = make_policy({"name": "trained", "file": path})
    decisions = []

    def act(stacks):
        actions, values = policy.decide(stacks)
        decisions.append((stacks[0], actions))
        return actions, values

    film, seeds = make_environment({"env": env, "env_kwargs": kwargs}), np.array([3])
    simulate_episodes(seeds, film, replace(policy, decide=act), np.array([300]))
    (game,), (filmed,) = envs._games, policy.generators(seeds)
    game.env.reset(seed=0)
    game.env.advance(0, filmed.noops)
    game.stack = np.repeat(envs._picture(game.env, 0)[None], 4, 0)
    for stack, action in decisions:
        assert np.array_equal(envs.obs[0], stack)
        envs.step(action)
    assert filmed.noops and len(decisions) > 50


def test_network_for_states_is_rejected_for_frames():
    with pytest.raises(GoalreelError, match=r"'\[64, 64\]' is for states, but"):
        made(CAR, range(1), pixels=True, network=[64, 64])
