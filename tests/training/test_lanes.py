"""Environments for training: lanes and Gymnasium's own give the same transitions, bit for bit."""

import numpy as np
import pytest

from goalreel.dqn.environments import Lanes, WrappedCars


@pytest.mark.parametrize("skip", [1, 4])
@pytest.mark.parametrize("lanes", [1, 5])
def test_lanes_are_gymnasiums_environments(lanes, skip):
    ours, theirs = Lanes(7, lanes, skip), WrappedCars(7, lanes, skip)
    dice = np.random.default_rng(1)
    assert np.array_equal(ours.seen, theirs.seen)
    seen, ended = ours.seen, 0
    for _ in range(900 // skip):
        # Along the velocity, so that some episodes terminate and others are truncated.
        along = np.where(seen[:, 1] >= 0, 2, 0)
        actions = np.where(dice.random(lanes) < 0.6, along, dice.integers(3, size=lanes))
        one, other = ours.step(actions.astype(np.int8)), theirs.step(actions.astype(np.int8))
        for name, value in vars(one).items():
            assert np.array_equal(value, getattr(other, name)), name
        seen, ended = one.seen, ended + int((one.terminated | one.truncated).sum())
    assert ended > 2
