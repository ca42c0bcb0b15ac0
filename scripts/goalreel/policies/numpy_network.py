"""Trained networks in NumPy: greedy actions that are the same in every batch.

The last bits of a matrix product depend on the library, the processor and the number of rows, and
they could decide between two actions. `act` therefore estimates the rounding errors. If the best
value leads by less than 100 errors, `act` computes the values again in float64 instead of float32.
Actions whose values then differ by less than 100 errors count as equal, so the first one is taken.
This module does not need PyTorch.

A convolution is a matrix product: each window is copied into a row (K. Chellapilla et al., "High
Performance Convolutional Neural Networks for Document Processing", 2006). The channels come last,
because the products have them there. The first convolution takes the pixels of all frames that a
stride covers as the channels of one place, which copies whole runs of numbers.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

# The lead of a clear decision, in estimated errors, none of which a measured one exceeded.
_CLEAR = 100


@dataclass(frozen=True)
class NumpyNetwork:
    """Convolutions and dense layers with ReLU between them; the last layer gives action values.

    Attributes:
        weights: the arrays of one checkpoint, named as in network_file.py.
        dtype: of all sums, float32 or float64.
        strides: of the convolutions.
    """

    weights: Mapping[str, np.ndarray]
    dtype: type = np.float32
    strides: Sequence[int] = ()

    def values(self, observations: np.ndarray) -> np.ndarray:
        """Return the action values, (n, actions), rounded as the dtype does.

        Args:
            observations: (n, stack, side, side) uint8 for convolutions, otherwise (n, numbers).
        """
        return self._evaluate(observations)[0]

    def act(self, observations: np.ndarray) -> np.ndarray:
        """Return the best actions, (n,) int64, the first of equal ones."""
        values, errors = self._evaluate(observations)
        is_best = values >= values.max(axis=1, keepdims=True) - _CLEAR * errors[:, None]
        best = is_best.argmax(axis=1)
        if self.dtype != np.float64:
            for row in np.flatnonzero(is_best.sum(axis=1) != 1).tolist():
                best[row] = self._in_float64.act(observations[row : row + 1])[0]
        return best

    def _evaluate(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the action values, (n, actions), and the estimated error of a value, (n,)."""
        units, errors = observations.reshape(len(observations), -1), np.zeros(len(observations))
        if self._convolutions:  # one at a time, so that all arrays fit into the processor's cache
            units, errors = map(np.array, zip(*map(self._convolve, observations), strict=True))
        units = units.astype(self.dtype, copy=False)
        for place, layer in enumerate(self._dense, 1):
            errors = layer.error(errors, np.sqrt(np.einsum("nu,nu->n", units, units)))
            used = np.flatnonzero(units.any(axis=0))  # ReLU has left few of a convolution's
            units = units[:, used] @ layer.matrix[used]
            units += layer.bias
            if place < len(self._dense):
                np.maximum(units, 0, out=units)
        return units, errors / math.sqrt(units.shape[1])

    def _convolve(self, stack: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the last convolution's output, (units,), and its error, given uint8 frames."""
        cell, frames = self.strides[0], len(stack)
        side = stack.shape[1] // cell
        pixels = stack[:, : side * cell, : side * cell]
        pixels = pixels.reshape(frames, side, cell, side, cell).transpose(1, 3, 0, 2, 4)
        units, error = pixels.astype(self.dtype, order="C").reshape(side, side, -1), 0.0
        for layer in self._convolutions:
            row, views = units.reshape(-1), _windows(units, layer.kernel, layer.stride)
            error = layer.error(error, math.sqrt(row @ row))
            units = views.reshape(-1, len(layer.matrix)) @ layer.matrix
            units += layer.bias
            units = np.maximum(units, 0, out=units).reshape(*views.shape[:2], -1)
        return units.reshape(-1), error

    @cached_property
    def _in_float64(self) -> "NumpyNetwork":
        return NumpyNetwork(self.weights, np.float64, self.strides)

    @cached_property
    def _convolutions(self) -> list["_Layer"]:
        layers = []
        for place, name in enumerate(_layers(self.weights, "convolution")):
            weights, stride = self.weights[f"{name}.weight"], self.strides[place]
            filters, channels, kernel, _ = weights.shape
            if place == 0:
                kernel, cell, stride = kernel // stride, stride, 1
                cut = weights.reshape(filters, channels, kernel, cell, kernel, cell)
                weights = cut.transpose(0, 1, 3, 5, 2, 4).reshape(filters, -1, kernel, kernel)
            layers.append(self._layer(name, weights.transpose(0, 2, 3, 1), kernel, stride))
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


def _layers(weights: Mapping[str, np.ndarray], kind: str = "") -> list[str]:
    """Return the names of the layers of a kind, "convolution" or "dense", in order; "" for all."""
    names = (name.removesuffix(".weight") for name in weights if name.endswith(".weight"))
    return sorted(name for name in names if name.startswith(kind))


def _windows(units: np.ndarray, kernel: int, stride: int) -> np.ndarray:
    """Return the windows of (rows, columns, channels) as (rows, columns, kernel, kernel, channels).

    `sliding_window_view` takes longer than the product.
    """
    (height, width, channels), (down, across, each) = units.shape, units.strides
    size = (height - kernel) // stride + 1, (width - kernel) // stride + 1
    strides = down * stride, across * stride, down, across, each
    return np.ndarray((*size, kernel, kernel, channels), units.dtype, units, strides=strides)
