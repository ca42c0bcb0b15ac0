"""Deep Q-learning: the same settings and seed give the same weights, and the car learns."""

import csv
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="takes PyTorch, which is no requirement")
torch.set_num_threads(1)  # the same sums, whatever the machine's cores


from goalreel.environments.physics import DISCRETE  # noqa: E402
from goalreel.policies.network import Network  # noqa: E402
from goalreel.policies.network_file import Checkpoints, read_checkpoints, write_checkpoints  # noqa: E402
from goalreel.provenance.spec import parse_spec  # noqa: E402
from goalreel.training.dqn import training  # noqa: E402
from goalreel.training.dqn.metrics import metrics_of  # noqa: E402
from goalreel.training.dqn.playing import (  # noqa: E402
    Batch,
    Played,
    StateReplay,
    choose,
    epsilon_at,
    transitions,
)
from goalreel.training.dqn.settings import VARIANTS, settings_of  # noqa: E402
from goalreel.training.dqn.training import (  # noqa: E402
    COLUMNS,
    Clock,
    Dues,
    Log,
    Trained,
    evaluate,
    train,
)
from goalreel.training.games.car_lanes import Step  # noqa: E402

SHORT = replace(settings_of("baseline", 600), hidden=(16, 16), start=200)


@pytest.mark.parametrize("variant", [name for name, s in VARIANTS.items() if s.deterministic])
def test_the_same_seed_gives_the_same_weights(variant):
    settings = replace(settings_of(variant, 600), hidden=(16, 16), start=200)
    one, again, other = (train(settings, seed) for seed in (1, 1, 2))
    assert len(one.weights) == 1 and one.frames >= 600
    for name, weights in one.weights[0].items():
        assert np.array_equal(weights, again.weights[0][name])
    assert any(not np.array_equal(w, other.weights[0][n]) for n, w in one.weights[0].items())


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({}, {"no_grad": False}),  # which saves time alone: the targets are detached either way
        pytest.param({}, {"wrapped": False}, marks=pytest.mark.slow),
        pytest.param({"lanes": 3}, {"wrapped": False}, marks=pytest.mark.slow),
    ],
)
def test_what_only_saves_time_changes_no_weight(changes, same):
    settings = replace(SHORT, **changes)
    one, other = train(settings, 1), train(replace(settings, **same), 1)
    for name, weights in one.weights[0].items():
        assert np.array_equal(weights, other.weights[0][name])


def test_the_log_has_a_row_for_each_episode_and_second(tmp_path):
    trained = train(SHORT, 1)
    trained.log.write(tmp_path / "log.csv")
    rows = list(csv.DictReader((tmp_path / "log.csv").read_text().splitlines()))
    assert tuple(rows[0]) == COLUMNS
    episodes = [row for row in rows if row["kind"] == "episode"]
    assert [int(row["episode"]) for row in episodes] == list(range(1, len(episodes) + 1))
    assert len(episodes) == 600 // 200, "nothing reaches the goal so early"
    assert all(int(row["steps"]) == 200 and float(row["return"]) == -200 for row in episodes)
    metrics = metrics_of(trained, "baseline", 1, True)
    assert metrics.solved_frames is None and metrics.best == metrics.last == -200
    assert "baseline, seed 1: 600 frames" in str(metrics) and "not solved" in str(metrics)


def test_what_was_trained_is_what_is_played(tmp_path):
    """The network's greedy choices, and so its evaluation, survive the policy file."""
    trained = train(replace(SHORT, rescaled=True), 3)
    metrics = metrics_of(trained, "baseline", 3, True)
    evaluated = (metrics.checkpoints, metrics.means, tuple(trained.weights))
    write_checkpoints(
        tmp_path / "p.pt", Checkpoints(SHORT.hidden, *evaluated, parse_spec('{"stage":"dqn"}'))
    )
    kept = read_checkpoints(tmp_path / "p.pt")
    network = kept.network(kept.choose("last"))
    assert isinstance(network, Network)

    assert np.array_equal(evaluate(network.act), evaluate(Network.of(trained.weights[-1]).act))
    assert evaluate(network.act).mean() == trained.evaluations[-1].mean


@pytest.mark.slow
def test_it_learns_to_drive(monkeypatch):
    """Few frames of the fastest variant; a random policy's mean return is -200."""
    monkeypatch.setattr(training, "EVALUATE_EVERY", 10_000)
    trained = train(settings_of("fast", 40_000), 1)
    assert max(found.mean for found in trained.evaluations) >= -120


def test_evaluation_is_gymnasiums_episodes():
    import gymnasium as gym

    def act(seen):  # along the velocity
        return np.where(seen[:, 1] >= 0, 2, 0).astype(np.int8)

    found = evaluate(act, episodes=5)
    env = gym.make(DISCRETE.id)
    for number, wanted in enumerate(found):
        seen, _ = env.reset(seed=10_000 + number)
        total, over = 0.0, False
        while not over:
            seen, reward, terminated, truncated, _ = env.step(2 if seen[1] >= 0 else 0)
            total, over = total + reward, terminated or truncated
        assert total == wanted


def test_things_are_due_as_often_as_frames_pass():
    due = Dues(16, first=1000)
    frames = (500, 1000, 1015, 1016, 1047, 1048, 1100)
    assert [due.passed(frame) for frame in frames] == [0, 0, 0, 1, 1, 1, 3]
    assert due.passed(1100) == 0


def test_the_clock_stops_while_a_policy_is_evaluated(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(training.time, "perf_counter", lambda: now[0])
    clock = Clock()
    now[0] += 3
    clock.without(now.__setitem__, 0, 100.0)
    now[0] += 4
    assert clock.seconds == 7


def test_solved_is_the_first_evaluation_of_110_or_better(monkeypatch):
    trained, learner = Trained(Log(1)), SimpleNamespace(weights=lambda: {})
    monkeypatch.setattr(training.Network, "of", lambda weights: SimpleNamespace(act=None))
    for frame, mean in ((5000, -110.1), (10_000, -110), (15_000, -90), (20_000, -200)):
        monkeypatch.setattr(training, "evaluate", lambda _, mean=mean: np.full(100, mean))
        training._evaluate(trained, learner, frame, frame / 1000)
    assert trained.solved == (10_000, 10.0) and len(trained.evaluations) == 4


def test_transitions_know_an_end_from_a_time_limit():
    """The value after a time limit counts; discounts are of as many steps as the action lasted."""
    obs, next_obs, reset_obs = np.arange(24, dtype=np.float32).reshape(3, 4, 2)
    lasted, flags = np.array([12, 5, 8, 3]), np.array([[0, 1, 0, 1], [0, 0, 1, 1]], bool)
    step = Step(28, lasted, -1.0 * lasted, *flags, next_obs, reset_obs)
    batch = transitions(Played(obs, np.array([2, 0, 1, 2], np.int8), step, 0.5), 0.98)
    assert batch.discounts == pytest.approx([0.98**12, 0, 0.98**8, 0], rel=1e-6)
    assert batch.discounts.dtype == batch.rewards.dtype == np.float32
    assert np.array_equal(batch.obs, obs) and np.array_equal(batch.rewards, -lasted)
    assert np.array_equal(batch.next_obs, next_obs), "not what the next episode begins with"
    assert batch.actions.tolist() == [2, 0, 1, 2] and batch.actions.dtype == np.int64


def test_epsilon_falls_and_stays():
    settings = settings_of("baseline", 100_000)
    assert [round(epsilon_at(settings, f), 3) for f in (0, 10_000, 20_000, 99_999)] == [
        *(1.0, 0.535, 0.07, 0.07),
    ]
    rng = np.random.default_rng(0)
    seen = np.zeros((4000, 2), np.float32)
    chosen = choose(lambda s: np.tile([0.0, 0.0, 1.0], (len(s), 1)), seen, 0.3, rng)
    assert abs((chosen != 2).mean() - 0.2) < 0.03


def test_the_oldest_transitions_are_written_over():
    replay = StateReplay(10)
    for number in range(4):
        count = np.full(4, number)
        seen = np.stack([count, count], 1).astype(np.float32)
        replay.append(Batch(seen, count, count.astype(np.float32), seen + 1, count * 0.0))
    batch = replay.sample(500, np.random.default_rng(0))
    assert len(replay) == 10 and set(batch.actions.tolist()) == {1, 2, 3}
    assert np.array_equal(batch.obs[:, 0], batch.rewards) and batch.obs.dtype == np.float32
    assert np.array_equal(batch.next_obs, batch.obs + 1)
