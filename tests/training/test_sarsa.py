"""A policy is learned by SARSA(lambda) on Gymnasium's own steps, and the same one every time."""

import functools
import math
import operator

import gymnasium
import numpy as np
import pandas as pd
import pytest
from conftest import CONTINUOUS, DISCRETE

from goalreel.environments.physics import ENVIRONMENTS
from goalreel.environments.seeding import episode_seeds
from goalreel.errors import GoalreelError
from goalreel.policies.tile_policy import (
    TILES,
    TILINGS,
    action_values,
    features,
    greedy,
    read_policies,
    write_policies,
)
from goalreel.provenance.spec import canonical
from goalreel.training.sarsa import train, training_seeds, write_log

SEED, CHECKPOINTS = 7, [1, 10, 50, 100, 250]


@pytest.fixture(scope="module")
def trained():
    """Return the policies of the default training."""
    return train(SEED, CHECKPOINTS)


def tiles_of(position: float, velocity: float) -> list[int]:
    """Return an observation's tiles, one per grid, by the definition of tile coding."""
    # In widths of a tile, of which 8 cover a variable's range, its bounds included.
    across = min(max((position + 1.2) / (1.8 / 8), 0), 7.999)
    along = min(max((velocity + 0.07) / (0.14 / 8), 0), 7.999)
    tiles = []
    for grid in range(8):
        row = math.floor(across + (1 * grid % 8) / 8)  # shifted by eighths of a tile
        column = math.floor(along + (3 * grid % 8) / 8)
        tiles.append(grid * 81 + row * 9 + column)
    return tiles


def test_features_are_the_tiles_that_an_observation_lies_in():
    rng = np.random.default_rng(0)
    seen = rng.uniform((-1.2, -0.07), (0.6, 0.07), (20_000, 2)).astype(np.float32)
    seen[:500, 1] = 0  # where every episode starts
    found = features(seen)
    assert found.shape == (20_000, TILINGS) and found.dtype == np.int64
    assert found.tolist() == [tiles_of(*observation) for observation in seen.tolist()]
    assert len(np.unique(found)) > 0.9 * TILES


def test_the_bounds_of_the_state_space_have_tiles_too():
    """Rounded to float32, -1.2, 0.6 and 0.07 lie beyond the bounds."""
    corners = np.array([(p, v) for p in (-1.2, 0.6) for v in (-0.07, 0.07)], np.float32)
    assert (corners.astype(float) != [(p, v) for p in (-1.2, 0.6) for v in (-0.07, 0.07)]).all()
    inside = corners * np.float32(1 - 1e-6)
    assert features(corners).tolist() == features(inside).tolist()
    assert features(corners).tolist() == [tiles_of(*corner) for corner in corners.tolist()]
    assert features(corners).min() == 0 and features(corners).max() < TILES


def test_training_is_sarsa_lambda_on_gymnasiums_own_steps(trained):
    """The textbook's algorithm, in scalars and with sparse traces, gives the same weights."""
    env = gymnasium.make(DISCRETE)
    weights = [[0.0] * TILES for _ in range(3)]

    def observed(observation):
        tiles = tiles_of(*observation.tolist())
        return tiles, max(range(3), key=lambda action: value(tiles, action))

    def value(tiles, action):  # no `sum`, which compensates from Python 3.12 on
        return functools.reduce(operator.add, (weights[action][tile] for tile in tiles))

    for episode in range(1, 51):
        word = np.random.SeedSequence(SEED, spawn_key=(episode,)).generate_state(1, np.uint64)[0]
        tiles, action = observed(env.reset(seed=int(word) >> 11)[0])
        traces, steps, over = {}, 0, False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(action)
            steps, over = steps + 1, terminated or truncated
            traces.update({(action, tile): 1.0 for tile in tiles})
            here, after = value(tiles, action), 0.0
            if not terminated:
                tiles, action = observed(observation)
                after = value(tiles, action)
            change = 0.3 / 8 * (reward + after - here)
            for (a, tile), trace in traces.items():
                weights[a][tile] += change * trace
                traces[a, tile] = trace * 0.9
        row = {name: column[episode - 1] for name, column in trained.log.columns().items()}
        assert row == {
            **{"episode": episode, "seed": int(word) >> 11, "steps": steps},
            **{"return": -float(steps), "reached": terminated},
        }
        if episode in CHECKPOINTS:
            kept = trained.weights[CHECKPOINTS.index(episode)]
            assert kept.tolist() == weights, episode
    assert 0 < trained.log.reached[:50].sum() < 50, "both ways to end must have been met"


def test_it_solves_mountain_car(trained):
    """100 of Gymnasium's episodes take 110 steps or fewer on average, and 200 before training."""
    env = gymnasium.make(DISCRETE)
    for weights, low, high in ((trained.weights[0], 200, 200), (trained.weights[-1], 0, 110)):
        rule, steps = greedy(weights), []
        for seed in range(100):
            observation, over, count = env.reset(seed=seed)[0], False, 0
            while not over:
                action = rule(observation[None], ENVIRONMENTS[DISCRETE])[0]
                observation, _, terminated, truncated, _ = env.step(int(action))
                over, count = terminated or truncated, count + 1
            steps.append(count)
        assert low <= np.mean(steps) <= high


def test_a_checkpoint_is_a_shorter_training(trained):
    short = train(SEED, [50])
    assert np.array_equal(short.weights[0], trained.weights[2])
    for name, column in short.log.columns().items():
        assert np.array_equal(column, trained.log.columns()[name][:50])
    assert not np.array_equal(train(SEED + 1, [10]).weights[0], trained.weights[1])


def test_training_never_sees_a_filmed_episode():
    training = training_seeds(2025, np.arange(1, 501))
    filmed = [episode_seeds(2025, np.arange(501), attempt) for attempt in range(20)]
    assert len(np.unique(training)) == 500 and not np.isin(training, filmed).any()
    assert training.min() >= 0 and training.max() < 2**53


def test_an_action_is_the_same_alone_and_in_company():
    """Among weights whose sums depend on their order, and equal values."""
    rng = np.random.default_rng(3)
    weights = rng.choice([0.1, 0.2, 0.3, 1e15, -1e15], (3, TILES))
    seen = rng.uniform((-1.2, -0.07), (0.6, 0.07), (3000, 2)).astype(np.float32)
    rule, environment = greedy(weights), ENVIRONMENTS[DISCRETE]
    together = rule(seen, environment)
    assert together.shape == (3000,) and together.dtype == np.int8
    alone = [rule(observation[None], environment)[0] for observation in seen]
    assert together.tolist() == alone
    order = rng.permutation(3000)
    assert np.array_equal(rule(seen[order], environment), together[order])
    tiles = features(seen)
    in_order = [functools.reduce(operator.add, row) for row in weights[0, tiles].tolist()]
    assert action_values(weights, tiles)[0].tolist() == in_order
    assert (weights[0, tiles].sum(axis=1) != in_order).any(), "the order must matter"
    assert not rule(seen, environment)[weights[:, tiles].std(axis=0).max(axis=1) == 0].any()
    assert not greedy(np.zeros((3, TILES)))(seen, environment).any(), "the first of equals"


def test_policies_come_back_as_they_were(trained, tmp_path):
    write_policies(tmp_path / "one.npz", trained)
    write_log(tmp_path / "one.csv", trained.log)
    back = read_policies(tmp_path / "one.npz")
    assert back.spec == trained.spec and back.weights.dtype == np.float64
    assert np.array_equal(back.ages, CHECKPOINTS)
    assert np.array_equal(back.weights, trained.weights)
    table = pd.read_csv(tmp_path / "one.csv")
    assert list(table) == ["episode", "seed", "steps", "return", "reached"]
    for name, column in table.items():
        assert np.array_equal(column, back.log.columns()[name])
        assert np.array_equal(column, trained.log.columns()[name])


@pytest.mark.parametrize("checkpoints", [[], [0, 5], [5, 5], [10, 1]])
def test_checkpoints_that_do_not_increase_are_refused(checkpoints):
    with pytest.raises(GoalreelError, match=r"train\.checkpoints"):
        train(SEED, checkpoints)


def spec_text(env=DISCRETE, seed=SEED):
    config = {"env": env, "train.seed": seed, "train.checkpoints": [1, 5]}
    return canonical({"stage": "train", "config": config})


def test_the_stage_gives_the_same_bytes_for_one_seed_and_others_for_another(tmp_path):
    from train import train as stage

    made = []
    for number, seed in enumerate((SEED, SEED, SEED + 1)):
        paths = tmp_path / f"{number}.npz", tmp_path / f"{number}.csv"
        files = ["--policy", paths[0], "--table", paths[1], "--sums", tmp_path / "SHA256SUMS"]
        stage.main([*map(str, files), "--spec", spec_text(seed=seed)])
        made.append([path.read_bytes() for path in paths])
    assert made[0] == made[1] and not set(made[0]) & set(made[2])
    assert read_policies(tmp_path / "0.npz").spec.text == spec_text()
    with pytest.raises(GoalreelError, match=f"not {CONTINUOUS}"):
        stage.main([*map(str, files), "--spec", spec_text(CONTINUOUS)])
