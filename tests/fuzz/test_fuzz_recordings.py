"""Random recordings of any dtype and skewed lengths are played as in Gymnasium.

GOALREEL_FUZZ=full tries more of them.
"""

import itertools

import gymnasium
import numpy as np
import pytest
from fuzzing import FULL

from goalreel.environments.environment import make_environment
from goalreel.provenance.spec import NO_SPEC
from goalreel.simulation.recorded_episodes import play_recording
from goalreel.simulation.recording_file import read_blocks, read_recording, write_blocks

ENVS = ("MountainCar-v0", "CartPole-v1", "Pendulum-v1")


def narrowed(values: list[int], rng) -> np.ndarray:
    """Return whole numbers in one of the dtypes that hold them."""
    given = np.array(values)
    with np.errstate(over="ignore"):
        fits = [d for d in "?bBhHiIlLefd" if np.array_equal(given.astype(d).astype(object), given)]
    return given.astype(rng.choice(fits))


@pytest.mark.parametrize("trial", range(60 if FULL else 6))
def test_random_recording_plays_as_in_gymnasium(tmp_path, trial):
    rng = np.random.default_rng(trial)
    name, most_seed = rng.choice(ENVS), int(rng.choice([100, 2**31, 2**53]))
    env, rows, recorded = gymnasium.make(name), [], []
    discrete = hasattr(env.action_space, "n")
    for number in rng.permutation(rng.choice([1, 9, 200])):
        length, seed = max(int(rng.pareto(0.8) * 3), 1), int(rng.integers(most_seed))
        env.reset(seed=seed)
        actions, rewards, ends = [], [], [False]
        while not any(ends) and len(rewards) < length:
            action = env.action_space.sample()
            _, reward, *ends, _ = env.step(action)
            actions.append(int(action) if discrete else float(action[0]))
            rewards.append(float(reward))
            rows.append((number, seed, actions[-1]))
        recorded.append((seed, actions, rewards))
    episodes, seeds, actions = zip(*rows, strict=True)
    np.savez(
        tmp_path / "recording.npz",
        episode=narrowed(episodes, rng),
        seed=narrowed(seeds, rng),
        action=narrowed(actions, rng) if discrete else np.array(actions, rng.choice(["f", "d"])),
    )
    environment, blocks = make_environment({"env": name}), tmp_path / "blocks.npz"
    write_blocks(blocks, read_recording(str(tmp_path / "recording.npz")), NO_SPEC)
    shards = sorted({0, int(rng.integers(len(recorded))), len(recorded)})
    for first, end in itertools.pairwise(shards):
        some = read_blocks(blocks, range(first, end), "recording.npz")
        played = play_recording(some, environment, NO_SPEC, None)
        for place, (seed, actions, rewards) in enumerate(recorded[first:end]):
            _, our_actions, our_rewards = played.episode(place)[:3]
            assert played.episodes.seed[place] == seed
            assert our_actions.reshape(-1).tolist() == np.array(actions, our_actions.dtype).tolist()
            assert our_rewards.tolist() == rewards, (name, first + place)
