"""Trajectories are bit for bit those of Gymnasium's environments for the same seeds."""

import gymnasium
import numpy as np
import pytest
from conftest import CONTINUOUS, DISCRETE, PUMP, simulated

from goalreel.environments.action_space import action_space
from goalreel.environments.environment import make_environment
from goalreel.environments.mountain_car import ENVIRONMENTS
from goalreel.errors import GoalreelError
from goalreel.policies.policy import make_policy
from goalreel.simulation.episodes import simulate_episodes

POLICIES = [
    (DISCRETE, PUMP),
    (DISCRETE, {"name": "pump", "epsilon": 0.3}),
    (DISCRETE, {"name": "near_optimal", "epsilon": 0.0}),
    (DISCRETE, {"name": "near_optimal", "epsilon": 0.1}),
    (DISCRETE, {"name": "random", "epsilon": 0.0}),
    (CONTINUOUS, {"name": "pump", "epsilon": 0.0, "force": 1.0}),
    (CONTINUOUS, {"name": "pump", "epsilon": 0.5, "force": 0.35}),
    (CONTINUOUS, {"name": "random", "epsilon": 0.0}),
]


def as_gymnasium(env, action):
    return np.array([action]) if env == CONTINUOUS else int(action)


@pytest.mark.parametrize(("env", "policy"), POLICIES)
@pytest.mark.parametrize("options", [{}, {"goal_velocity": 0.03, "max_episode_steps": 110}])
def test_episode_equals_gymnasium_bit_for_bit(env, policy, options):
    seeds = np.arange(64) * 140_737_488_355 + 3
    kwargs = {key: options[key] for key in options.keys() - {"max_episode_steps"}}
    limit = options.get("max_episode_steps")
    config = {"env": env, "env_kwargs": kwargs, "max_episode_steps": limit}
    episodes = simulate_episodes(seeds, make_environment(config), make_policy(policy))
    peer = gymnasium.make(env, **options)
    for episode in episodes[:25]:
        peer.reset(seed=episode.seed)
        returned = 0.0
        assert np.array_equal(peer.unwrapped.state, episode.states[0])
        for t in range(len(episode.rewards)):
            action = as_gymnasium(env, episode.actions[t])
            _, reward, terminated, truncated, _ = peer.step(action)
            returned += reward
            state = np.asarray(peer.unwrapped.state, np.float64)
            assert np.array_equal(state, episode.states[t + 1]), (episode.seed, t)
            assert reward == episode.rewards[t]
            over = t + 1 == len(episode.rewards)
            assert (terminated or truncated) == over
        assert (terminated, truncated) == (episode.terminated, episode.truncated)
        assert returned == episode.return_


@pytest.mark.parametrize("goal_velocity", [0, -0.07, 0.0699999999, 0.07])
@pytest.mark.parametrize("env", [DISCRETE, CONTINUOUS])
def test_step_from_any_state_equals_gymnasium(env, goal_velocity):
    """The states include the wall, the speed limits and the goal; forces exceed the clamp."""
    environment = make_environment({"env": env, "env_kwargs": {"goal_velocity": goal_velocity}})
    peer = gymnasium.make(env, goal_velocity=goal_velocity, disable_env_checker=True).unwrapped
    peer.reset()
    rng, dtype = np.random.default_rng(3), np.float64 if env == DISCRETE else np.float32
    positions, velocities = rng.uniform(-1.2, 0.6, 6000), rng.uniform(-0.07, 0.07, 6000)
    positions[:500], positions[500:3000] = -1.2, rng.uniform(0.38, 0.6, 2500)
    velocities[1000:2000] = np.where(rng.random(1000) < 0.5, 0.07, -0.07)
    velocities[2000:2500] = goal_velocity + rng.uniform(-0.002, 0.002, 500)
    velocities[2500:3000] = rng.uniform(0.069, 0.0705, 500)
    positions, velocities = positions.astype(dtype), velocities.astype(dtype)
    positions[5000:] = dtype(environment.goal_position) - velocities[5000:]
    actions = rng.integers(0, 3, 6000) if env == DISCRETE else rng.uniform(-1.5, 1.5, 6000)
    actions = actions.astype(environment.action_dtype)
    states, rewards, terminated = environment.step(np.stack([positions, velocities]), actions)
    stopped = limited = 0
    for i in range(6000):
        given = positions[i], velocities[i]
        peer.state = given if env == DISCRETE else np.array(given, np.float32)
        _, reward, over, _, _ = peer.step(as_gymnasium(env, actions[i]))
        assert tuple(peer.state) == tuple(states[:, i]), i
        assert (reward, over) == (rewards[i], terminated[i]), i
        stopped += tuple(peer.state) == (dtype(-1.2), 0)
        limited += abs(peer.state[1]) == dtype(0.07)
    assert min(stopped, limited) > 100 and 20 < terminated.sum() < 5900


@pytest.mark.parametrize(
    ("env", "policy"), [(e, p) for e, p in POLICIES if p["name"] == "random" or p["epsilon"]]
)
def test_random_actions_are_drawn_as_documented(env, policy):
    """A scalar NumPy generator per episode gives the same actions."""
    seeds = np.arange(40) + 2**40
    episodes = simulate_episodes(seeds, ENVIRONMENTS[env], make_policy(policy))
    rule = make_policy(policy | {"epsilon": 0.0}) if policy["name"] != "random" else None
    for episode in episodes:
        stream = np.random.SeedSequence(episode.seed, spawn_key=(1,))
        generator = np.random.Generator(np.random.PCG64(stream))
        for t in range(len(episode.rewards)):
            coin, choice = generator.random(), generator.random()
            if rule is None or coin < policy["epsilon"]:
                wanted = np.float32(2 * choice - 1) if env == CONTINUOUS else int(3 * choice)
            else:
                seen = episode.states[t : t + 1].astype(np.float32)
                wanted = rule.act(seen, ENVIRONMENTS[env], None)[0][0]
            assert episode.actions[t] == wanted, (episode.seed, t)


@pytest.mark.parametrize("show_failures", [False, True])
def test_reach_does_not_depend_on_its_shard(show_failures):
    policy = {"name": "pump", "epsilon": 0.4}
    whole = simulated(reaches=range(40), policy=policy, show_failures=show_failures)
    parts = [
        simulated(reaches=range(i, i + 8), policy=policy, show_failures=show_failures)
        for i in range(0, 40, 8)
    ]
    assert len(whole.attempts.reach) > 40, "the test needs attempts that fail"
    for name in ("states", "actions", "rewards"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        assert np.array_equal(joined, getattr(whole, name))
    for name, column in vars(whole.attempts).items():
        joined = np.concatenate([getattr(part.attempts, name) for part in parts])
        assert np.array_equal(joined, column)


def test_many_sub_environments_do_not_change_a_shard(monkeypatch):
    policy = {"name": "pump", "epsilon": 0.4}
    whole = simulated(reaches=range(30), policy=policy, show_failures=True)
    monkeypatch.setattr("goalreel.simulation.reaches._MAX_REACHES", 7)
    monkeypatch.setattr("goalreel.environments.mountain_car.MountainCar.max_envs", 3)
    monkeypatch.setattr("goalreel.simulation.episodes._ROWS", 50)
    lots = simulated(reaches=range(30), policy=policy, show_failures=True)
    assert np.array_equal(whole.states, lots.states)
    assert np.array_equal(whole.episodes.seed, lots.episodes.seed)


def test_reach_ends_with_first_successful_attempt():
    shard = simulated(reaches=range(60), policy={"name": "pump", "epsilon": 0.4})
    tried = shard.attempts
    assert shard.episodes.reach.tolist() == list(range(60))
    for reach in range(60):
        outcomes = tried.terminated[tried.reach == reach]
        assert tried.attempt[tried.reach == reach].tolist() == list(range(len(outcomes)))
        assert outcomes[-1] and not outcomes[:-1].any()
    policy = {"name": "pump", "epsilon": 0.4}
    reached = simulated(reaches=range(60), policy=policy, show_failures=True)
    assert len(reached) == len(tried.reach)


def test_open_reaches_after_max_attempts_raise_with_a_fix():
    with pytest.raises(GoalreelError) as error:
        simulated(reaches=range(10), policy={"name": "random", "epsilon": 0.0}, attempts=3)
    said = str(error.value)
    assert said.startswith("reach 0: ") and "this job: 10 of 10" in said
    assert "all 3 attempts. Raise max_attempts_per_reach" in said and "policy" in said


def test_actions_may_round_past_a_bound_but_not_exceed_it():
    space = action_space(gymnasium.spaces.Box(-1, 0.7, (1,), np.float32), "Box-v0")
    rounded = np.nextafter(np.float32(0.7), np.float32(1))
    assert space.validate(np.array([[rounded]]), 1, "policy")[0, 0] == rounded
    with pytest.raises(GoalreelError, match="not in the action space"):
        space.validate(np.array([[0.7001]], np.float32), 1, "policy")

    class Tensor:
        def __array__(self, *_, **__):
            raise RuntimeError("it requires grad")

    with pytest.raises(GoalreelError, match="policy returned no array .it requires grad"):
        space.validate(Tensor(), 1, "policy")
