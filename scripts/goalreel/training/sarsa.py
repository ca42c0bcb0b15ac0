"""SARSA(lambda) with replacing traces: it learns to drive MountainCar-v0 from episode to episode.

Sources: R. S. Sutton and A. G. Barto, "Reinforcement Learning: An Introduction" (2nd edition),
12.7, the algorithm with binary features, and 10.1, its step size for Mountain Car. Episodes are
those of physics, under Gymnasium's limit of 200 steps.
"""

import os
from collections.abc import Sequence

import numpy as np

from goalreel.environments.physics import DISCRETE, State, reset
from goalreel.environments.seeding import SEED_BITS
from goalreel.errors import GoalreelError
from goalreel.files.atomic import replacing
from goalreel.policies.tile_policy import (
    ACTIONS,
    TILES,
    TILINGS,
    LearnedPolicies,
    TrainingLog,
    action_values,
    best_action,
    features,
)
from goalreel.provenance.spec import NO_SPEC, Spec

_TRACE_DECAY = 0.9  # lambda; nothing is discounted (gamma 1)
_STEP_SIZE = 0.3 / TILINGS


def train(seed: int, checkpoints: Sequence[int], spec: Spec = NO_SPEC) -> LearnedPolicies:
    """Train for `checkpoints[-1]` episodes and return the weights after each of `checkpoints`.

    Every action is greedy. What makes it explore is that all weights start at zero, which is more
    than any state is worth. Episode n is reset with a seed of its own (training_seeds), so that a
    longer training begins as a shorter one. Raises GoalreelError if the checkpoints are not
    increasing numbers of episodes.
    """
    counts = np.asarray(checkpoints, np.int64)
    if len(counts) == 0 or counts[0] < 1 or (np.diff(counts) < 1).any():
        raise GoalreelError(
            f"train.checkpoints: {list(checkpoints)} must be numbers of episodes, each at least 1 "
            f"and more than the one before it"
        )
    episodes = np.arange(1, counts[-1] + 1)
    seeds = training_seeds(seed, episodes)
    initial = reset(seeds)
    weights = np.zeros((ACTIONS, TILES))
    saved, rows = [], []
    for episode in episodes.tolist():
        rows.append(_learn(weights, initial.take(np.array([episode - 1]))))
        if episode in counts:
            saved.append(weights.copy())
    steps, returns, reached = (np.array(column) for column in zip(*rows, strict=True))
    log = TrainingLog(episodes, seeds, steps, returns, reached)
    return LearnedPolicies(counts, np.stack(saved), log, spec)


def training_seeds(seed: int, episodes: np.ndarray) -> np.ndarray:
    """Return the seeds that training episodes are reset with, (n,) int64 in [0, 2**53).

    They are the top bits of `SeedSequence(seed, spawn_key=(episode,)).generate_state(1,
    np.uint64)`: a spawn key of another length than that of the filmed episodes, which are thus
    others, also under the same seed.
    """
    sequences = (np.random.SeedSequence(seed, spawn_key=(e,)) for e in episodes.tolist())
    words = [int(sequence.generate_state(1, np.uint64)[0]) for sequence in sequences]
    return np.array([word >> (64 - SEED_BITS) for word in words], np.int64)


def _learn(weights: np.ndarray, state: State) -> tuple[int, float, bool]:
    """Play one episode from `state`, of one lane, and change `weights` after each of its steps.

    Returns its steps, its return and whether it reached the goal.
    """
    traces = np.zeros_like(weights)
    tiles = features(state.observations())[0]
    action = best_action(action_values(weights, tiles))
    steps, return_ = 0, 0.0
    for _ in range(DISCRETE.max_steps):
        state, (reward,), (terminated,) = DISCRETE.step(state, action[None])
        steps, return_ = steps + 1, return_ + float(reward)
        traces[action, tiles] = 1  # replaced, not added to
        value = action_values(weights, tiles)[action]
        target = reward
        if not terminated:
            # The step limit cuts an episode off, but ends nothing: its last state has a value too.
            next_tiles = features(state.observations())[0]
            next_values = action_values(weights, next_tiles)
            next_action = best_action(next_values)
            target = reward + next_values[next_action]
        weights += _STEP_SIZE * (target - value) * traces
        if terminated:
            break
        traces *= _TRACE_DECAY
        tiles, action = next_tiles, next_action
    return steps, return_, bool(terminated)


def write_log(path: str | os.PathLike, log: TrainingLog) -> None:
    """Write the log as a CSV table, a row per training episode."""
    import pandas as pd

    with replacing(path) as temporary:
        pd.DataFrame(log.columns()).to_csv(temporary, index=False, lineterminator="\n")
