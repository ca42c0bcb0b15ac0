"""The vectorized generators match NumPy's, bit for bit."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from goalreel.environments import seeding
from goalreel.environments.seeding import action_generators, episode_seeds

SEEDS = [0, 1, 2**32 - 1, 2**32, 2**53 - 1]


@settings(max_examples=50, deadline=None)
@given(
    st.integers(0, 2**53 - 1),
    st.lists(st.integers(0, 2**32 - 1), min_size=1),
    st.integers(0, 10**6),
)
def test_episode_seeds_are_numpys_seed_sequences(root, reaches, attempt):
    sequences = [np.random.SeedSequence(root, spawn_key=(reach, attempt)) for reach in reaches]
    expected = [int(one.generate_state(1, np.uint64)[0]) >> 11 for one in sequences]
    assert episode_seeds(root, np.array(reaches), attempt).tolist() == expected


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 2**53 - 1), min_size=1, max_size=20))
def test_draws_equal_numpy_pcg64(seeds):
    seeds = seeds + SEEDS
    resets = seeding.uniform(np.array(seeds), np.zeros(5), np.ones(5))
    assert resets.T.tolist() == [np.random.default_rng(seed).random(5).tolist() for seed in seeds]
    actions = action_generators(np.array(seeds))
    streams = [np.random.SeedSequence(seed, spawn_key=(1,)) for seed in seeds]
    expected_actions = [np.random.Generator(np.random.PCG64(stream)) for stream in streams]
    for _ in range(5):
        actions, drawn = actions.random()
        assert drawn.tolist() == [generator.random() for generator in expected_actions]


def test_seeds_of_a_million_reaches_are_unique():
    seeds = episode_seeds(2025, np.arange(1_000_000), 0)
    assert len(np.unique(seeds)) == 1_000_000
    assert seeds.min() >= 0 and seeds.max() < 2**53
