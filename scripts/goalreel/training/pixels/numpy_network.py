"""The Q-network as collectors compute it: NumPy alone, 1.26 or 2, and no PyTorch.

A convolution is a matrix product: the window that each place of its output sees is copied into a
row (K. Chellapilla et al., "High Performance Convolutional Neural Networks for Document
Processing", 2006). Between layers the channels come last, as the products give them. BatchNorm has
been folded into the weights: network.weights_for_acting.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from goalreel.training.pixels.settings import CONVOLUTIONS, side_after_convolutions


@dataclass(frozen=True)
class Actor:
    """Layers, each a matrix (inputs, outputs) and a bias (outputs,), float32."""

    layers: tuple[tuple[np.ndarray, np.ndarray], ...]

    @classmethod
    def of(cls, weights: Mapping[str, np.ndarray]) -> "Actor":
        """Return the actor of `PixelLearner.weights()`."""
        layers = []
        for place in range(len(CONVOLUTIONS)):
            kernels = weights[f"convolution{place}.weight"]  # (filters, channels, height, width)
            if place:  # a layer's output has its channels last
                kernels = kernels.transpose(0, 2, 3, 1)
            layers.append((_matrix(kernels), weights[f"convolution{place}.bias"]))
        side = side_after_convolutions()
        hidden = weights["hidden.weight"].reshape(-1, CONVOLUTIONS[-1][0], side, side)
        layers.append((_matrix(hidden.transpose(0, 2, 3, 1)), weights["hidden.bias"]))
        layers.append((_matrix(weights["values.weight"]), weights["values.bias"]))
        return cls(tuple(layers))

    def values(self, stacks: np.ndarray) -> np.ndarray:
        """Return the values, (n, actions) float32, of (n, stack, 84, 84) uint8 stacks."""
        features = stacks
        for place, (_, kernel, stride) in enumerate(CONVOLUTIONS):
            axes = (2, 3) if place == 0 else (1, 2)
            windows = sliding_window_view(features, (kernel, kernel), axis=axes)
            if place == 0:  # (n, channels, rows, columns, kernel, kernel)
                windows = windows[:, :, ::stride, ::stride].transpose(0, 2, 3, 1, 4, 5)
            else:  # (n, rows, columns, channels, kernel, kernel)
                windows = windows[:, ::stride, ::stride].transpose(0, 1, 2, 4, 5, 3)
            rows = np.empty(windows.shape, np.float32)
            rows[...] = windows
            features = self._relu(place, rows.reshape(-1, len(self.layers[place][0])))
            features = features.reshape(*windows.shape[:3], -1)
        last = len(CONVOLUTIONS)
        matrix, bias = self.layers[last + 1]
        return self._relu(last, features.reshape(len(stacks), -1)) @ matrix + bias

    def _relu(self, place: int, rows: np.ndarray) -> np.ndarray:
        """Return a layer's output, ReLU included."""
        matrix, bias = self.layers[place]
        output = rows @ matrix
        output += bias
        return np.maximum(output, 0, out=output)


def _matrix(weights: np.ndarray) -> np.ndarray:
    """Return a layer's weights, (outputs, ...), as (inputs, outputs)."""
    return np.ascontiguousarray(weights.reshape(len(weights), -1).T)
