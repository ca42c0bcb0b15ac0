"""Trained networks in NumPy: greedy actions that are the same in every batch.

The last bits of a matrix product depend on the library, the processor and the number of rows, and
they could decide between two actions. `decide` therefore estimates the rounding errors. If the
best value leads by less than 100 errors, it computes the values again in float64 instead of
float32. Actions whose values then differ by less than 100 errors count as equal, so the first one
is taken. This module does not need PyTorch.

A convolution is a matrix product: each window is copied into a row (K. Chellapilla et al., "High
Performance Convolutional Neural Networks for Document Processing", 2006). The channels come last,
because the products have them there.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from goalreel.environments.environment import Signals

# The lead of a clear decision, in estimated errors, none of which a measured one exceeded.
_CLEAR = 100
_CACHED = 5  # stacks that are convolved at a time, whose windows fit into the processor's cache
# Inputs of a layer that are multiplied at a time. For few rows, their weights stay in the cache,
# and OpenBLAS does not copy them first ("direct sgemm", on processors with AVX-512).
_INPUTS = 128


@dataclass(frozen=True)
class NumpyNetwork:
    """Convolutions and dense layers with ReLU between them; the last layer gives action values."""

    weights: Mapping[str, np.ndarray]  # of one checkpoint, named as in network_file.py
    dtype: type = np.float32  # of all sums, float32 or float64
    strides: Sequence[int] = ()  # of the convolutions
    tanh: bool = False  # between the dense layers, instead of ReLU

    def decide(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the best actions, (n,) int64, and the values of all actions, (n, actions)."""
        values, errors = self.evaluate(observations)
        is_best = values >= values.max(axis=1, keepdims=True) - _CLEAR * errors[:, None]
        best = is_best.argmax(axis=1)
        if self.dtype != np.float64:
            for row in np.flatnonzero(is_best.sum(axis=1) != 1).tolist():
                best[row : row + 1], _ = self._in_float64.decide(observations[row : row + 1])
        return best, values

    def evaluate(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the action values, (n, actions), and the estimated error of a value, (n,).

        observations: (n, stack, side, side) uint8 for convolutions, otherwise (n, numbers).
        """
        units, errors = observations.reshape(len(observations), -1), np.zeros(len(observations))
        if self._convolutions:
            firsts = range(0, len(observations), _CACHED)
            parts = [self._convolve(observations[first : first + _CACHED]) for first in firsts]
            units, errors = map(np.concatenate, zip(*parts, strict=True))
        units = units.astype(self.dtype, copy=False)
        for place, layer in enumerate(self._dense, 1):
            errors = layer.error(errors, _norms(units))
            units = _product(units, layer.matrix)
            units += layer.bias
            if place < len(self._dense):
                units = np.tanh(units) if self.tanh else np.maximum(units, 0, out=units)
        return units, errors / math.sqrt(units.shape[1])

    def _convolve(self, stacks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the last convolution's output, (n, units), and its errors, given uint8 frames."""
        units = np.stack(list(stacks.swapaxes(0, 1)), axis=-1).astype(self.dtype)
        errors = np.zeros(len(stacks))
        for layer in self._convolutions:
            errors = layer.error(errors, _norms(units))
            views = _windows(units, layer.kernel, layer.stride)
            units = views.reshape(-1, len(layer.matrix)) @ layer.matrix
            units += layer.bias
            units = np.maximum(units, 0, out=units).reshape(*views.shape[:3], -1)
        return units.reshape(len(stacks), -1), errors

    @cached_property
    def _in_float64(self) -> "NumpyNetwork":
        return NumpyNetwork(self.weights, np.float64, self.strides, self.tanh)

    @cached_property
    def _convolutions(self) -> list["_Layer"]:
        layers = []
        for place, name in enumerate(_layers(self.weights, "convolution")):
            weights = self.weights[f"{name}.weight"].transpose(0, 2, 3, 1)
            layers.append(self._layer(name, weights, weights.shape[1], self.strides[place]))
        return layers

    @cached_property
    def _dense(self) -> list["_Layer"]:
        names, layers = _layers(self.weights, "dense"), []
        for name in names:
            weights = self.weights[f"{name}.weight"]
            if name == names[0] and self._convolutions:  # channels come last
                channels = len(self._convolutions[-1].bias)
                weights = weights.reshape(len(weights), channels, -1).swapaxes(1, 2)
            layers.append(self._layer(name, weights))
        return layers

    def _layer(self, name: str, weights: np.ndarray, kernel: int = 1, stride: int = 1) -> "_Layer":
        """Return a layer. weights: (outputs, ...), in the order of the products."""
        matrix = np.ascontiguousarray(weights.reshape(len(weights), -1).T, self.dtype)
        return _Layer(matrix, self.weights[f"{name}.bias"].astype(self.dtype), kernel, stride)


def signals_of(values: np.ndarray, is_ppo: bool) -> Signals:
    """Return the signals of a network's last layer, (n, actions), which has logits or Q values."""
    if is_ppo:
        shares = np.exp(values - values.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        return {"probabilities": shares.astype(np.float32)}
    values = values.astype(np.float32)
    return {"value": values.max(axis=1), "q": values}


@dataclass(frozen=True)
class _Layer:
    """A layer as a matrix, (inputs, outputs), and a bias, (outputs,)."""

    matrix: np.ndarray
    bias: np.ndarray
    kernel: int  # of a convolution, otherwise 1
    stride: int

    def error(self, before: float | np.ndarray, size: float | np.ndarray) -> float | np.ndarray:
        """Return the estimated norm of the output's error, given the input's error and norm.

        Rounding errors have no common direction, so a layer changes their norm like that of a
        random vector. A sum of n terms is off by about sqrt(n) roundoffs of its terms (N. J. Higham
        and T. Mary, "A New Approach to Probabilistic Rounding Error Analysis", 2019).
        """
        return self._gain * (before + self._roundoff * size)

    @cached_property
    def _roundoff(self) -> float:
        return math.sqrt(len(self.matrix)) * float(np.finfo(self.matrix.dtype).eps) / 2

    @cached_property
    def _gain(self) -> float:
        # A window overlaps others, so that an input is in (kernel / stride)^2 windows.
        overlap = self.kernel / self.stride
        return overlap * float(np.linalg.norm(self.matrix)) / math.sqrt(len(self.matrix))


def _layers(weights: Mapping[str, np.ndarray], kind: str) -> list[str]:
    """Return the names of the layers of a kind, "convolution" or "dense", in order."""
    names = (name.removesuffix(".weight") for name in weights if name.endswith(".weight"))
    return sorted((n for n in names if n.startswith(kind)), key=lambda n: int(n.removeprefix(kind)))


def _product(units: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return units @ matrix."""
    used = np.flatnonzero(units.any(axis=0))  # ReLU has left few of a convolution's
    if len(used) < len(matrix) / 2:  # copying more takes longer than multiplying by all
        parts = [used[k : k + _INPUTS] for k in range(0, max(len(used), 1), _INPUTS)]
    else:
        parts = [slice(k, k + _INPUTS) for k in range(0, len(matrix), _INPUTS)]
    return sum(units[:, part] @ matrix[part] for part in parts)


def _norms(units: np.ndarray) -> np.ndarray:
    """Return the norm of each of n arrays."""
    rows = units.reshape(len(units), -1)
    return np.sqrt(np.einsum("nu,nu->n", rows, rows))


def _windows(units: np.ndarray, kernel: int, stride: int) -> np.ndarray:
    """Return windows of (n, rows, columns, channels) as (n, rows, columns, kernel, numbers).

    A row of a window is copied at once. `sliding_window_view` takes longer than the product.
    """
    (count, height, width, channels), (each, down, across, one) = units.shape, units.strides
    size = count, (height - kernel) // stride + 1, (width - kernel) // stride + 1
    strides = each, down * stride, across * stride, down, one
    return np.ndarray((*size, kernel, kernel * channels), units.dtype, units, strides=strides)
