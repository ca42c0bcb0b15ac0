"""Deep Q-learning is reproducible, and the car learns."""

import time
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="takes PyTorch, which is no requirement")
torch.set_num_threads(1)  # the same sums, whatever the machine's cores


from goalreel.environments.mountain_car import DISCRETE  # noqa: E402
from goalreel.training.dqn import training  # noqa: E402
from goalreel.training.dqn.playing import (  # noqa: E402
    StateReplay,
    Transitions,
    choose,
    epsilon_at,
    transitions,
)
from goalreel.training.dqn.settings import VARIANTS, Settings  # noqa: E402
from goalreel.training.dqn.training import evaluate, train  # noqa: E402
from goalreel.training.games.car_envs import Step  # noqa: E402

SHORT = Settings(total_timesteps=120, hidden=(16, 16), learning_starts=40)


@pytest.mark.parametrize("variant", VARIANTS)
def test_same_seed_gives_same_weights(variant):
    settings = replace(VARIANTS[variant], total_timesteps=120, hidden=(16, 16), learning_starts=40)
    one, again, other = (train(settings, seed) for seed in (1, 1, 2))
    assert len(one.weights) == 1 and one.metrics.decisions >= 120
    for name, weights in one.weights[0].items():
        assert np.array_equal(weights, again.weights[0][name])
    assert any(not np.array_equal(w, other.weights[0][n]) for n, w in one.weights[0].items())


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({}, {"no_grad": False}),  # saves only time, as the targets are always detached
        pytest.param({}, {"wrapped": False}, marks=pytest.mark.slow),
        pytest.param({"n_envs": 3}, {"wrapped": False}, marks=pytest.mark.slow),
    ],
)
def test_time_saving_settings_change_no_weight(changes, same):
    settings = replace(SHORT, **changes)
    one, other = (train(each, 1) for each in (settings, replace(settings, **same)))
    for name, weights in one.weights[0].items():
        assert np.array_equal(weights, other.weights[0][name])


@pytest.mark.parametrize("variant", VARIANTS)
def test_decisions_are_sampled_equally_often(variant, monkeypatch):
    sizes = []

    def learn(learner, batch):
        sizes.append(len(batch.actions))
        return 0.0

    monkeypatch.setattr(training.Learner, "learn", learn)
    settings = replace(VARIANTS[variant], total_timesteps=480, hidden=(16, 16), learning_starts=240)
    metrics = train(settings, 1).metrics
    # The first steps may differ by an environment or two, and all environments step together.
    assert metrics.decisions in range(480, 480 + settings.n_envs)
    assert set(sizes) == {32 * settings.train_freq}
    assert abs(sum(sizes) - 240 * 32) <= 2 * 16 * 32


def test_log_has_a_row_per_episode():
    trained = train(SHORT, 1)
    metrics, rows = trained.metrics, trained.episodes
    decisions, frames, seconds, returns, *_ = zip(*rows, strict=True)
    # An episode of 200 frames takes 16 decisions of 12 frames and one of 8.
    assert decisions == tuple(range(17, 121, 17)) and frames == tuple(range(200, 1401, 200))
    assert set(returns) == {-200.0} and list(seconds) == sorted(seconds)
    assert metrics.decisions == 120 and metrics.frames == 1400 + 12
    assert not metrics.solved and metrics.means[-1] == -200 and metrics.cpu_seconds > 0
    assert str(metrics).startswith("not solved in 120 decisions (1,412 frames)")


@pytest.mark.slow
def test_dqn_learns_to_drive():
    """The fastest variant needs less than half of 240,000 frames."""
    metrics = train(VARIANTS["fast"], 1).metrics
    assert metrics.solved and metrics.means[-1] >= -110 and metrics.decisions < 10_000


def test_evaluation_is_gymnasiums_episodes():
    import gymnasium as gym

    def act(seen):  # along the velocity
        return np.where(seen[:, 1] >= 0, 2, 0).astype(np.int8)

    env = gym.make(DISCRETE.id)
    for number, wanted in enumerate(evaluate(act)[:5]):
        seen, _ = env.reset(seed=10_000 + number)
        total, over = 0.0, False
        while not over:
            seen, reward, terminated, truncated, _ = env.step(2 if seen[1] >= 0 else 0)
            total, over = total + reward, terminated or truncated
        assert total == wanted


def test_solved_training_ends_and_excludes_evaluation_time(monkeypatch):
    means = iter([-110.1, -109.9])

    def evaluated(act):
        began = time.process_time()
        while time.process_time() < began + 1.0:
            pass
        return np.full(100, next(means))

    monkeypatch.setattr(training, "EVALUATE_EVERY", 50)
    monkeypatch.setattr(training, "evaluate", evaluated)
    metrics = train(SHORT, 1).metrics
    assert metrics.checkpoints == (50, 100) and metrics.means == (-110.1, -109.9)
    assert metrics.solved and metrics.decisions == 100
    assert metrics.seconds < 2.0 and metrics.cpu_seconds < 2.0, "two evaluations take 2 s"


def test_transitions_distinguish_end_from_time_limit():
    """The value after a time limit counts, and discounts follow the duration of an action."""
    obs, next_obs, reset_obs = np.arange(24, dtype=np.float32).reshape(3, 4, 2)
    lasted, flags = np.array([12, 5, 8, 3]), np.array([[0, 1, 0, 1], [0, 0, 1, 1]], bool)
    step = Step(lasted, -1.0 * lasted, *flags, next_obs, reset_obs)
    batch = transitions(obs, np.array([2, 0, 1, 2], np.int8), step, 0.98)
    assert batch.discounts == pytest.approx([0.98**12, 0, 0.98**8, 0], rel=1e-6)
    assert batch.discounts.dtype == batch.rewards.dtype == np.float32
    assert np.array_equal(batch.obs, obs) and np.array_equal(batch.rewards, -lasted)
    assert np.array_equal(batch.next_obs, next_obs), "not what the next episode begins with"
    assert batch.actions.tolist() == [2, 0, 1, 2] and batch.actions.dtype == np.int64


def test_epsilon_falls_and_stays():
    settings = Settings()
    epsilons = [epsilon_at(settings, decision) for decision in (0, 1000, 2000, 19_999)]
    assert epsilons == pytest.approx([1.0, 0.525, 0.05, 0.05])
    rng = np.random.default_rng(0)
    seen = np.zeros((4000, 2), np.float32)
    chosen = choose(lambda s: np.tile([0.0, 0.0, 1.0], (len(s), 1)), seen, 0.3, rng)
    assert abs((chosen != 2).mean() - 0.2) < 0.03


def test_new_transitions_overwrite_the_oldest():
    replay = StateReplay(10)
    for number in range(4):
        count = np.full(4, number)
        seen = np.stack([count, count], 1).astype(np.float32)
        replay.append(Transitions(seen, count, count.astype(np.float32), seen + 1, count * 0.0))
    batch = replay.sample(500, np.random.default_rng(0))
    assert len(replay) == 10 and set(batch.actions.tolist()) == {1, 2, 3}
    assert np.array_equal(batch.obs[:, 0], batch.rewards) and batch.obs.dtype == np.float32
    assert np.array_equal(batch.next_obs, batch.obs + 1)
