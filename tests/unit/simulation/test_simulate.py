"""A trajectory is bit for bit what Gymnasium's environment gives for its seed."""

import math

import gymnasium
import numpy as np
import pytest
from conftest import CONTINUOUS, DISCRETE, PUMP, simulated

from goalreel.environments import physics
from goalreel.environments.environment import make_environment
from goalreel.environments.physics import ENVIRONMENTS, reset
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
def test_episode_equals_gymnasium_bit_for_bit(env, policy):
    seeds = np.arange(64) * 140_737_488_355 + 3
    episodes = simulate_episodes(seeds, ENVIRONMENTS[env], make_policy(policy))
    peer = gymnasium.make(env)
    for e in range(25):
        peer.reset(seed=int(seeds[e]))
        returned = 0.0
        assert np.array_equal(peer.unwrapped.state, episodes.states[e, 0])
        for t in range(episodes.steps[e]):
            action = as_gymnasium(env, episodes.actions[e, t])
            _, reward, terminated, truncated, _ = peer.step(action)
            returned += reward
            state = np.asarray(peer.unwrapped.state, np.float64)
            assert np.array_equal(state, episodes.states[e, t + 1]), (e, t)
            assert reward == episodes.rewards[e, t]
            over = t + 1 == episodes.steps[e]
            assert (terminated or truncated) == over
        assert (terminated, truncated) == (episodes.terminated[e], episodes.truncated[e])
        assert returned == episodes.returns[e]


def test_forces_beyond_the_clamp_equal_gymnasium():
    environment = ENVIRONMENTS[CONTINUOUS]
    rng = np.random.default_rng(1)
    actions = rng.uniform(-2, 2, (200, 40)).astype(np.float32)
    actions[rng.random(actions.shape) < 0.1] = 1
    actions[rng.random(actions.shape) < 0.1] = -1
    state = reset(np.arange(40))
    states, rewards = [], []
    for row in actions:
        state, reward, _ = environment.step(state, row)
        states.append(state.observations())
        rewards.append(reward)
    peer = gymnasium.make(CONTINUOUS, disable_env_checker=True).unwrapped
    for lane in range(40):
        peer.reset(seed=lane)
        for t in range(200):
            observed, reward, *_ = peer.step(actions[t, lane : lane + 1])
            assert np.array_equal(observed, states[t][lane]), (lane, t)
            assert reward == rewards[t][lane]


def test_the_continuous_walls_limits_and_goal_equal_gymnasium():
    """float32 states at the edges of the state space, where clips and comparisons round."""
    environment = ENVIRONMENTS[CONTINUOUS]
    rng = np.random.default_rng(5)
    positions, velocities = rng.uniform(-1.2, 0.6, 6000), rng.uniform(-0.07, 0.07, 6000)
    positions[:1000] = rng.uniform(-1.2, -1.13, 1000)
    positions[1000:3000] = rng.uniform(0.38, 0.46, 2000)
    velocities[2000:4000] = np.where(rng.random(2000) < 0.5, 0.07, -0.07)
    positions, velocities = positions.astype(np.float32), velocities.astype(np.float32)
    actions = rng.uniform(-1.5, 1.5, 6000).astype(np.float32)
    # States whose next position is the goal to the last float32 bit.
    positions[5000:] = np.float32(0.45) - velocities[5000:]
    state, rewards, terminated = environment.step(physics.State(positions, velocities), actions)
    peer = gymnasium.make(CONTINUOUS, disable_env_checker=True).unwrapped
    peer.reset()
    limited = 0
    for i in range(6000):
        peer.state = np.array([positions[i], velocities[i]], np.float32)
        observed, reward, over, _, _ = peer.step(actions[i : i + 1])
        assert observed.tolist() == [state.positions[i], state.velocities[i]], i
        assert (reward, over) == (rewards[i], terminated[i]), i
        limited += abs(observed[1]) == np.float32(0.07)
    assert limited > 500 and 100 < terminated.sum() < 5000


@pytest.mark.parametrize(("env", "policy"), POLICIES)
def test_random_actions_are_drawn_as_documented(env, policy):
    """A scalar NumPy generator per episode gives the same actions."""
    if policy["name"] != "random" and policy["epsilon"] == 0:
        return
    seeds = np.arange(40) + 2**40
    episodes = simulate_episodes(seeds, ENVIRONMENTS[env], make_policy(policy))
    rule = make_policy(policy | {"epsilon": 0.0}) if policy["name"] != "random" else None
    for e, seed in enumerate(seeds.tolist()):
        stream = np.random.SeedSequence(seed, spawn_key=(1,))
        generator = np.random.Generator(np.random.PCG64(stream))
        for t in range(episodes.steps[e]):
            coin, choice = generator.random(), generator.random()
            if rule is None or coin < policy["epsilon"]:
                wanted = np.float32(2 * choice - 1) if env == CONTINUOUS else int(3 * choice)
            else:
                seen = episodes.states[e, t : t + 1].astype(np.float32)
                wanted = rule.act(seen, ENVIRONMENTS[env], None)[0][0]
            assert episodes.actions[e, t] == wanted, (e, t)
    if policy["name"] == "random":
        played = np.arange(episodes.actions.shape[1]) < episodes.steps[:, None]
        drawn = episodes.actions[played].astype(float)
        assert abs(drawn.mean() - (0 if env == CONTINUOUS else 1)) < 0.05
        assert abs(drawn.std() - (1 / 3**0.5 if env == CONTINUOUS else (2 / 3) ** 0.5)) < 0.05


def test_the_wall_and_the_speed_limits_equal_gymnasium():
    """Random states all over the state space, so that every clip and the wall are met."""
    environment = ENVIRONMENTS[DISCRETE]
    rng = np.random.default_rng(2)
    positions, velocities = rng.uniform(-1.2, 0.6, 3000), rng.uniform(-0.07, 0.07, 3000)
    positions[:500] = -1.2
    actions = rng.integers(0, 3, 3000)
    state, _, terminated = environment.step(physics.State(positions, velocities), actions)
    peer = gymnasium.make(DISCRETE).unwrapped
    peer.reset()
    stopped = 0
    for i in range(3000):
        peer.state = (positions[i], velocities[i])
        _, _, over, _, _ = peer.step(int(actions[i]))
        assert peer.state == (state.positions[i], state.velocities[i])
        assert over == terminated[i]
        stopped += peer.state == (-1.2, 0)
    assert stopped > 100


@pytest.mark.parametrize("goal_velocity", [-0.07, 0.02, 0.0699999999, 0.07])
@pytest.mark.parametrize("env", [DISCRETE, CONTINUOUS])
def test_the_velocity_wanted_at_the_goal_equals_gymnasium(env, goal_velocity):
    """Speeds at and about their limit, where Gymnasium compares doubles with float32 numbers."""
    config = {"env": env, "env_kwargs": {"goal_velocity": goal_velocity}}
    environment = make_environment(config)
    peer = gymnasium.make(env, goal_velocity=goal_velocity, disable_env_checker=True).unwrapped
    peer.reset()
    rng = np.random.default_rng(3)
    dtype = np.float64 if env == DISCRETE else np.float32
    positions = rng.uniform(0.44, 0.6, 3000).astype(dtype)
    velocities = rng.uniform(-0.07, 0.07, 3000).astype(dtype)
    velocities[:1000] = goal_velocity + rng.uniform(-0.002, 0.002, 1000)
    velocities[1000:2000] = rng.uniform(0.069, 0.0705, 1000)
    actions = rng.integers(0, 3, 3000) if env == DISCRETE else rng.uniform(-1, 1, 3000)
    actions = actions.astype(environment.action_dtype)
    _, rewards, terminated = environment.step(physics.State(positions, velocities), actions)
    for i in range(3000):
        state = positions[i], velocities[i]
        peer.state = state if env == DISCRETE else np.array(state, np.float32)
        _, reward, over, _, _ = peer.step(as_gymnasium(env, actions[i]))
        assert (reward, over) == (rewards[i], terminated[i]), i
    assert 50 < terminated.sum() < 2990


@pytest.mark.parametrize(("env", "limit"), [(DISCRETE, 118), (CONTINUOUS, 108)])
def test_another_time_limit_and_goal_velocity_equal_gymnasium(env, limit):
    config = {"env": env, "env_kwargs": {"goal_velocity": 0.03}, "max_steps": limit}
    seeds = np.arange(30)
    episodes = simulate_episodes(seeds, make_environment(config), make_policy(PUMP))
    peer = gymnasium.make(env, goal_velocity=0.03, max_episode_steps=limit)
    for e in range(30):
        peer.reset(seed=e)
        over, steps = False, 0
        while not over:
            action = as_gymnasium(env, episodes.actions[e, steps])
            _, _, terminated, truncated, _ = peer.step(action)
            over, steps = terminated or truncated, steps + 1
        assert steps == episodes.steps[e]
        assert (terminated, truncated) == (episodes.terminated[e], episodes.truncated[e])
    assert episodes.truncated.any() and episodes.terminated.any()


def test_cosine_is_the_c_librarys():
    samples = np.random.default_rng(0).uniform(-3.6, 1.8, 500_000)
    assert physics._cos(samples).tolist() == [math.cos(x) for x in samples.tolist()]


def test_where_numpys_cosine_differs_the_c_librarys_is_taken(monkeypatch):
    monkeypatch.setattr(np, "cos", lambda x: np.sin(x + math.pi / 2))
    chosen = physics._agreeing_cos()
    samples = np.linspace(-3, 3, 1001)
    assert chosen(samples).tolist() == [math.cos(x) for x in samples.tolist()]


def test_near_optimal_is_the_three_curve_rule():
    rule = make_policy({"name": "near_optimal", "epsilon": 0.0})
    rng = np.random.default_rng(3)
    seen = rng.uniform((-1.2, -0.07), (0.6, 0.07), (20_000, 2)).astype(np.float32)
    actions, _ = rule.act(seen, ENVIRONMENTS[DISCRETE], None)
    for (p, v), action in zip(seen.astype(float).tolist(), actions.tolist(), strict=True):
        low = min(-0.09 * (p + 0.25) ** 2 + 0.03, 0.3 * (p + 0.9) ** 4 - 0.008)
        right = low <= v <= -0.07 * (p + 0.38) ** 2 + 0.07
        assert action == (2 if right else 0)


def test_policies_keep_what_the_readme_says_of_them():
    seeds = np.arange(5000)
    pump = simulate_episodes(seeds, ENVIRONMENTS[DISCRETE], make_policy(PUMP))
    assert pump.terminated.all()
    assert (pump.steps.min(), pump.steps.max()) == (113, 125)
    near = make_policy({"name": "near_optimal", "epsilon": 0.0})
    near = simulate_episodes(seeds, ENVIRONMENTS[DISCRETE], near)
    assert 104 < near.steps.mean() < 107
    assert 0.995 < near.terminated.mean() < 1


def test_epsilon_is_the_share_of_random_actions():
    seeds = np.arange(2000)
    policy = make_policy({"name": "pump", "epsilon": 0.3})
    episodes = simulate_episodes(seeds, ENVIRONMENTS[DISCRETE], policy)
    played = np.arange(episodes.actions.shape[1]) < episodes.steps[:, None]
    # pump never coasts, and a third of the random actions do
    assert abs((episodes.actions[played] == 1).mean() - 0.1) < 0.005


@pytest.mark.parametrize(("env", "policy"), POLICIES)
def test_an_episode_alone_is_the_episode_in_company(env, policy):
    seeds = np.arange(100, 200)
    together = simulate_episodes(seeds, ENVIRONMENTS[env], make_policy(policy))
    for e in (0, 17, 99):
        alone = simulate_episodes(seeds[e : e + 1], ENVIRONMENTS[env], make_policy(policy))
        steps = together.steps[e]
        assert alone.steps[0] == steps
        assert np.array_equal(alone.states[0], together.states[e, : steps + 1])
        assert np.array_equal(alone.actions[0], together.actions[e, :steps])
        assert alone.returns[0] == together.returns[e]


@pytest.mark.parametrize("show", ["reaches", "attempts"])
def test_a_reach_does_not_depend_on_its_shard(show):
    policy = {"name": "pump", "epsilon": 0.4}
    whole = simulated(reaches=range(40), policy=policy, show=show)
    parts = [simulated(reaches=range(i, i + 8), policy=policy, show=show) for i in range(0, 40, 8)]
    assert len(whole.attempts.reach) > 40, "some attempts must fail for this test to tell"
    for name in ("states", "actions", "rewards"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        assert np.array_equal(joined, getattr(whole, name))
    for name, column in vars(whole.attempts).items():
        joined = np.concatenate([getattr(part.attempts, name) for part in parts])
        assert np.array_equal(joined, column)


def test_lots_of_lanes_do_not_change_a_shard(monkeypatch):
    policy = {"name": "pump", "epsilon": 0.4}
    whole = simulated(reaches=range(30), policy=policy, show="attempts")
    monkeypatch.setattr("goalreel.simulation.reaches._SLOTS", 7)
    monkeypatch.setattr("goalreel.environments.physics.MountainCar.most_lanes", 3)
    monkeypatch.setattr("goalreel.simulation.episodes._ROWS", 50)
    lots = simulated(reaches=range(30), policy=policy, show="attempts")
    assert np.array_equal(whole.states, lots.states)
    assert np.array_equal(whole.episodes.seed, lots.episodes.seed)


def test_a_slot_is_filled_by_its_first_attempt_that_reaches():
    shard = simulated(reaches=range(60), policy={"name": "pump", "epsilon": 0.4})
    tried = shard.attempts
    assert shard.episodes.reach.tolist() == list(range(60))
    for reach in range(60):
        outcomes = tried.terminated[tried.reach == reach]
        assert tried.attempt[tried.reach == reach].tolist() == list(range(len(outcomes)))
        assert outcomes[-1] and not outcomes[:-1].any()
    reached = simulated(reaches=range(60), policy={"name": "pump", "epsilon": 0.4}, show="attempts")
    assert len(reached) == len(tried.reach)


def test_open_slots_after_max_attempts_are_an_error_that_says_what_to_change():
    with pytest.raises(GoalreelError) as error:
        simulated(reaches=range(10), policy={"name": "random", "epsilon": 0.0}, attempts=3)
    said = str(error.value)
    assert "0 of 10 reached the goal in 30 episodes" in said
    assert "max_attempts: 3" in said and "policy" in said
