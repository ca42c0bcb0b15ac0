"""Comparisons choose the seeds that decide, and find the first step that differs."""

import numpy as np
import pandas as pd
import pytest

from goalreel.configuration.values import name_sides
from goalreel.report.compare import choose_seeds
from goalreel.simulation.trajectories import first_difference
from goalreel.workflow.config import read_config

NAN = float("nan")


def chosen(values: dict[tuple[str, str], list[float]], steps: int = 10) -> dict[int, str]:
    """Choose from the differences of each pair, for the seeds 0, 1, ..."""
    differences = [pd.Series(own, dtype="float64") for own in values.values()]
    names = sorted({name for pair in values for name in pair})
    table = pd.DataFrame({f"steps_{name}": steps for name in names}, differences[0].index)
    table["differs_b"] = pd.array([None] * (len(table) - 1) + [3], "Int64")
    return choose_seeds(pd.DataFrame(values.keys(), columns=["a", "b"]), differences, table, names)


def test_chosen_seeds_have_largest_differences_each_way():
    noise = np.random.default_rng(1).normal(size=100)
    order = np.argsort(noise).tolist()
    assert sorted(chosen({("a", "b"): noise})) == sorted(order[:6] + order[-6:])
    assert list(chosen({("a", "b"): noise}))[:2] == [order[-1], order[0]]
    assert sorted(chosen({("a", "b"): abs(noise)})) == sorted(np.argsort(abs(noise))[-12:])
    two = chosen({("a", "b"): [5, 0, 0, -3.5], ("a", "c"): [7, 0, 0, 0]})
    assert two == {0: "b returns 5 more than a", 3: "b returns 3.5 less than a"}
    assert list(chosen({("a", "b"): [0] * 9})) == [8, 0, 1, 2], "first the one that differs"
    assert len(chosen({("a", "b"): noise}, steps=5000)) == 3, "of at most five minutes"


@pytest.mark.parametrize(
    ("part", "index", "value", "found"),
    [
        (0, 0, -0.0, (0, "observation")),
        (0, 3, 9.0, (3, "observation")),
        (1, 2, 1, (3, "action")),
        (2, 4, NAN, (5, "reward")),
    ],
)
def test_first_difference_is_of_a_bit(part, index, value, found):
    steps = np.zeros((6, 2)), np.zeros(5, np.int8), np.full(5, NAN)
    steps[2][4] = 1.0
    assert first_difference(steps, steps) is None, "equal NaNs are equal"
    other = tuple(array.copy() for array in steps)
    other[part][index] = value
    assert first_difference(steps, other) == found
    assert first_difference(steps, (steps[0][:2], *(a[:1] for a in steps[1:]))) == (2, "ending")
    bare = np.zeros((6, 0)), *steps[1:]
    assert first_difference(bare, bare) is None
    assert first_difference(bare, steps)[0] == 0, "of another environment"


@pytest.mark.parametrize(
    ("sides", "names"),
    [
        (["results/CartPole-v1-ppo", "results/CartPole-v1-random/"], ["ppo", "random"]),
        (["a/run", "b/run"], ["a/run", "b/run"]),
        ({10000: "z", "last": "a"}, ["10000", "last"]),
    ],
)
def test_sides_without_names_are_named_by_their_folders(sides, names):
    assert list(name_sides(sides)) == names
    assert read_config({"compare": sides})["results"] == "results"
