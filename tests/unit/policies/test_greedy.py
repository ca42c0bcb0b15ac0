"""The greedy choice of a network is exact for any batch and any grouping of sums."""

import numpy as np
from pixel_policies import random_perceptron

from goalreel.policies.network import Network


def observations(count: int) -> np.ndarray:
    """Return states of any kind, (count, 2) float32."""
    rng = np.random.default_rng(0)
    return rng.uniform([-1.2, -0.07], [0.6, 0.07], (count, 2)).astype(np.float32)


def test_greedy_choices_equal_exact_sums():
    network, obs = Network.of(random_perceptron(1, (64, 64))), observations(300)
    expected = [int(np.argmax(network.exact(one))) for one in obs]
    assert network.act(obs).tolist() == expected
    assert len(set(expected)) > 1
    alone = [int(network.act(one[None])[0]) for one in obs]
    assert alone == expected


def test_value_errors_stay_below_the_bound():
    network, obs = Network.of(random_perceptron(2, (256, 256))), observations(200)
    exact = np.array([network.exact(one) for one in obs])
    off = np.abs(network.values(obs.astype(np.float64)) - exact).max()
    assert off <= network.rounding < 1e-6 * np.abs(exact).max()


def test_close_values_are_summed_exactly():
    """Two actions have equal weights, summed in another order. They are equal, so the first wins."""
    network = Network.of(random_perceptron(3, (64, 64)))
    matrix, bias = network.layers[-1]
    order = np.random.default_rng(0).permutation(matrix.shape[1])
    inner, inner_bias = network.layers[-2]
    both = np.concatenate([inner, inner[order]]), np.concatenate([inner_bias, inner_bias[order]])
    nothing = np.zeros(len(order))
    last = [[*matrix[0], *nothing], [*nothing, *matrix[0][order]], [-1.0] * (2 * len(order))]
    twins = Network((network.layers[0], both, (np.array(last), np.array([bias[0], bias[0], -1e6]))))
    obs = observations(200)
    assert (twins.act(obs) == 0).all()
    values = twins.values(obs.astype(np.float64))
    assert (values[:, 0] < values[:, 1]).any(), "else a plain argmax would do"
