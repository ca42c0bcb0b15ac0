"""Random recordings, of any dtype and of skewed lengths, are played as Gymnasium plays them.

GOALREEL_FUZZ=full tries more of them, and of a million rows.
"""

import csv

import gymnasium
import numpy as np
import pytest
from fuzzing import FULL

from goalreel.environments.environment import make_environment
from goalreel.provenance.spec import NO_SPEC
from goalreel.simulation.recorded_episodes import play_recording
from goalreel.simulation.recording_blocks import read_blocks, write_blocks
from goalreel.simulation.recording_file import read_recording

WHOLE = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
WHOLE += ("float16", "float32", "float64", "bool")
ENVS = {"MountainCar-v0": 200, "CartPole-v1": 500, "Pendulum-v1": 200}
TRIALS = 60 if FULL else 6


def kept(values: list[int], rng) -> np.ndarray:
    """Return whole numbers in one of the dtypes that hold them."""
    given = np.array(values)
    fits = [d for d in WHOLE if np.array_equal(given.astype(d).astype(object), given)]
    return given.astype(rng.choice(fits))


def skewed(rng, most: int, rows: int) -> list[int]:
    """Return the lengths of episodes: most of them short, some as long as can be."""
    lengths = []
    while sum(lengths) < rows:
        lengths.append(int(np.clip(rng.pareto(0.8) * 3, 1, most)))
    return lengths


def record(path, env, rows, rng):
    """Write a recording; return each episode's seed, actions and, by Gymnasium, its rewards."""
    played, made = gymnasium.make(env), []
    discrete = hasattr(played.action_space, "n")
    most_seed = [100, 2**31, 2**53, 2**64][rng.integers(4)]
    for length in skewed(rng, ENVS[env], rows):
        seed = int(rng.integers(0, most_seed - 1, dtype=np.uint64, endpoint=True))
        played.reset(seed=seed)
        played.action_space.seed(len(made))
        actions, rewards, over = [], [], False
        while not over and len(rewards) < length:
            action = played.action_space.sample()
            _, reward, *ends, _ = played.step(action)
            actions.append(int(action) if discrete else float(action[0]))
            rewards.append(float(reward))
            over = any(ends)
        made.append((seed, actions, rewards))
    numbers = rng.permutation(len(made)) if rng.random() < 0.5 else np.arange(len(made))
    episode = [int(n) for n, (_, a, _) in zip(numbers, made, strict=True) for _ in a]
    seeds = [seed for seed, a, _ in made for _ in a]
    actions = [action for _, a, _ in made for action in a]
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            csv.writer(file).writerows(
                [["episode", "seed", "action"], *zip(episode, seeds, actions, strict=True)]
            )
        return made
    seeds = np.array(seeds, np.uint64) if max(seeds) >= 2**53 else kept(seeds, rng)
    whole = kept(actions, rng) if discrete else np.array(actions, rng.choice(["f4", "f8"]))
    write = np.savez_compressed if rng.random() < 0.5 else np.savez
    write(path, episode=kept(episode, rng), seed=seeds, action=whole)
    return made


@pytest.mark.parametrize("trial", range(TRIALS))
def test_a_random_recording_is_played_as_gymnasium_plays_it(tmp_path, trial):
    rng = np.random.default_rng(trial)
    env, suffix = rng.choice(sorted(ENVS)), rng.choice([".csv", ".npz"])
    path = tmp_path / f"r{suffix}"
    made = record(path, env, int(rng.choice([1, 50, 2000])), rng)
    environment, blocks = make_environment({"env": env}), tmp_path / "blocks.npz"
    write_blocks(blocks, read_recording(str(path)), NO_SPEC)
    # In shards, as the workflow does.
    cuts = sorted({0, len(made), *rng.integers(0, len(made) + 1, 2).tolist()})
    for first, end in zip(cuts, cuts[1:], strict=False):
        some = range(first, end)
        recorded = read_blocks(blocks, some, path.name)
        played = play_recording(recorded, environment, NO_SPEC, None)
        for place, (seed, actions, rewards) in enumerate(made[first:end]):
            assert played.episodes.seed[place] == seed
            ours = played.episode(place)
            assert ours[1].reshape(-1).tolist() == np.array(actions, ours[1].dtype).tolist()
            assert ours[2].tolist() == rewards, (env, suffix, first + place)
