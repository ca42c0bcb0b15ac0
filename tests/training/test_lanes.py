"""Environments for training: lanes and Gymnasium's own give the same transitions, bit for bit."""

import numpy as np
import pytest

from goalreel.training.games.car_lanes import Lanes, WrappedCars


@pytest.mark.parametrize("skip", [1, 12])
@pytest.mark.parametrize("lanes", [1, 5])
def test_lanes_are_gymnasiums_environments(lanes, skip):
    ours, theirs = Lanes(7, lanes, skip), WrappedCars(7, lanes, skip)
    rng = np.random.default_rng(1)
    assert np.array_equal(ours.obs, theirs.obs)
    seen, ended = ours.obs, 0
    for _ in range(900 // skip):
        # Along the velocity, so that some episodes terminate and others are truncated.
        along = np.where(seen[:, 1] >= 0, 2, 0)
        actions = np.where(rng.random(lanes) < 0.6, along, rng.integers(3, size=lanes))
        one, other = ours.step(actions.astype(np.int8)), theirs.step(actions.astype(np.int8))
        for name, value in vars(one).items():
            assert np.array_equal(value, getattr(other, name)), name
        seen, ended = one.obs, ended + int((one.terminated | one.truncated).sum())
    assert ended > 2


@pytest.mark.parametrize("cars", [Lanes, WrappedCars])
def test_an_episodes_last_action_lasts_until_its_time_limit(cars):
    """200 steps are 16 actions of 12 steps, and 8 steps of one more."""
    made = cars(1, 2, 12)
    for number in range(1, 35):
        step = made.step(np.ones(2, np.int8))  # which pushes nowhere
        cut = number % 17 == 0
        assert step.truncated.tolist() == [cut, cut] and not step.terminated.any()
        assert step.lasted.tolist() == [8, 8] if cut else [12, 12]
        assert np.array_equal(step.rewards, -step.lasted) and step.frames == step.lasted.sum()
