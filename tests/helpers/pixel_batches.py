"""Batches of pixels for several test modules."""

import numpy as np
import torch

from goalreel.policies.pixel_network import SIDE
from goalreel.training.pixels.frame_replay_buffer import ReplayBatch

ACTIONS = 3


def stacks(count: int, rng: np.random.Generator, stack: int = 4) -> np.ndarray:
    """Return random stacks of coarse squares, which a network sees better than noise."""
    coarse = rng.integers(0, 256, (count, stack, SIDE // 12, SIDE // 12), dtype=np.uint8)
    return coarse.repeat(12, axis=2).repeat(12, axis=3)


def batch(count: int, seed: int, stack: int = 4) -> ReplayBatch:
    """Return random steps, some of which terminated."""
    rng = np.random.default_rng(seed)
    arrays = (
        *(stacks(count, rng, stack), rng.integers(0, ACTIONS, count)),
        *(rng.normal(size=count).astype(np.float32), stacks(count, rng, stack)),
        np.where(rng.random(count) < 0.2, 0, 0.99).astype(np.float32),
    )
    return ReplayBatch(*map(torch.from_numpy, arrays))


def largest_difference(one: dict, other: dict) -> float:
    """Return the largest difference between two sets of weights."""
    assert one.keys() == other.keys()
    return max(float(np.abs(one[name] - other[name]).max()) for name in one)
