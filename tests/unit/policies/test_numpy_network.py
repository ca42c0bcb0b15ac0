"""The greedy choice of a network is the same in any batch, and as exact as it needs to be."""

import numpy as np
import pytest

from goalreel.policies import numpy_network
from goalreel.policies.numpy_network import NumpyNetwork


def random_network(seed=0, dtype=np.float32, frames=0, hidden=(64,), actions=4) -> NumpyNetwork:
    """Return a network of 84x84 frames, or of 4 numbers if `frames` is 0."""
    rng, weights, inputs = np.random.default_rng(seed), {}, 4
    convolutions = ((8, frames, 8, 8), (16, 8, 4, 4), (16, 16, 3, 3)) if frames else ()
    shapes = {f"convolution{place}": shape for place, shape in enumerate(convolutions)}
    inputs = 16 * 7 * 7 if frames else 4
    for place, outputs in enumerate((*hidden, actions)):
        shapes[f"dense{place}"], inputs = (outputs, inputs), outputs
    for name, shape in shapes.items():
        size = np.sqrt(2 / np.prod(shape[1:])) / (100 if name == "convolution0" else 1)
        weights[f"{name}.weight"] = rng.normal(0, size, shape).astype(np.float32)
        weights[f"{name}.bias"] = rng.normal(0, 0.1, shape[0]).astype(np.float32)
    return NumpyNetwork(weights, dtype, (4, 2, 1))


def observations(count: int, frames=0) -> np.ndarray:
    rng = np.random.default_rng(1)
    if frames:
        return rng.integers(0, 256, (count, frames, 84, 84), np.uint8)
    return rng.normal(0, 1, (count, 4))


@pytest.mark.parametrize(("frames", "count"), [(0, 300), (3, 40)])
def test_network_acts_the_same_in_any_batch(frames, count):
    network, obs = random_network(frames=frames), observations(count, frames)
    expected = (
        NumpyNetwork(network.weights, np.float64, network.strides).evaluate(obs)[0].argmax(axis=1)
    )
    assert len(set(expected.tolist())) > 1
    for size in (1, 2, 7, 20):
        parts = [network.decide(obs[first : first + size])[0] for first in range(0, count, size)]
        assert np.array_equal(np.concatenate(parts), expected), size


@pytest.mark.parametrize(("frames", "hidden"), [(0, (64, 64)), (0, (256, 256)), (4, (64,))])
def test_errors_are_below_their_estimate(frames, hidden):
    network, obs = random_network(3, np.float32, frames, hidden), observations(100, frames)
    in_float64 = NumpyNetwork(network.weights, np.float64, network.strides)
    (values, errors), exact = network.evaluate(obs), in_float64.evaluate(obs)[0]
    assert (np.abs(values - exact).max(axis=1) <= errors).all()
    assert (errors < 1e-4 * np.abs(exact).max(axis=1)).all()
    if not frames:
        more, errors = NumpyNetwork(network.weights, np.longdouble), in_float64.evaluate(obs)[1]
        assert (np.abs(more.evaluate(obs)[0] - exact).max(axis=1) <= errors).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_close_values_are_computed_more_precisely(dtype):
    """Two actions have equal weights, in another order. They are equal, so the first wins."""
    weights = dict(random_network(5, hidden=(64, 64)).weights)
    order, matrix = np.random.default_rng(0).permutation(64), weights["dense2.weight"][0]
    for part in ("weight", "bias"):
        inner = weights[f"dense1.{part}"]
        weights[f"dense1.{part}"] = np.concatenate([inner, inner[order]])
    nothing = np.zeros(64, np.float32)
    weights["dense2.weight"] = np.stack([[*matrix, *nothing], [*nothing, *matrix[order]]])
    weights["dense2.bias"] = np.zeros(2, np.float32)
    twins, obs = NumpyNetwork(weights, dtype, (4, 2, 1)), observations(100)
    values = twins.evaluate(obs)[0]
    assert (values[:, 0] < values[:, 1]).any(), "else a plain argmax would do"
    assert (twins.decide(obs)[0] == 0).all()


def test_only_close_decisions_need_float64(monkeypatch):
    network, obs = random_network(frames=2), observations(20, 2)
    asked, decide = [], NumpyNetwork.decide
    keep = lambda self, obs: asked.append(len(obs)) or decide(self, obs)  # noqa: E731
    monkeypatch.setattr(NumpyNetwork, "decide", keep)
    chosen = network.decide(obs)[0]
    assert asked == [20]
    monkeypatch.setattr(numpy_network, "_CLEAR", 1e7)
    assert np.array_equal(network.decide(obs)[0], chosen) and asked == [20] + [20] + [1] * 20


def test_eleven_layers_are_in_the_order_of_their_numbers():
    weights = {f"dense{n}.weight": np.full((1, 1), n + 1, np.float32) for n in range(11)}
    weights |= {f"dense{n}.bias": np.full(1, n, np.float32) for n in range(11)}
    value = 1.0
    for n in range(11):
        value = value * (n + 1) + n
    assert NumpyNetwork(weights).decide(np.ones((1, 1), np.float32))[1] == np.float32(value)
