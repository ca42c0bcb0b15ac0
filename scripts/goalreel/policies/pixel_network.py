"""The Q-network of pixels in NumPy alone, 1.26 or 2: what films and collectors without PyTorch use.

A convolution is a matrix product: the window that each place of its output sees is copied into a
row (K. Chellapilla et al., "High Performance Convolutional Neural Networks for Document
Processing", 2006). Between layers the channels come last, as the products give them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

SIDE = 84  # of an observation's frames
# By name the convolutions (filters, side of the kernel, stride) and the units after them: those of
# V. Mnih et al., "Playing Atari with Deep Reinforcement Learning" (2013), section 4.1, and of
# "Human-level control through deep reinforcement learning" (2015), "Model architecture".
NETWORKS = {
    "small": (((16, 8, 4), (32, 4, 2)), 256),
    "nature": (((32, 8, 4), (64, 4, 2), (64, 3, 1)), 512),
}
STRIDES = (4, 2, 1)  # of the convolutions of both


def side_after(kernels: tuple[int, ...]) -> int:
    """Return the side of the last convolution's output, of these sides of kernels."""
    side = SIDE
    for kernel, stride in zip(kernels, STRIDES, strict=False):
        side = (side - kernel) // stride + 1
    return side


@dataclass(frozen=True)
class Actor:
    """Layers, each a matrix (inputs, outputs) and a bias (outputs,), of one float type.

    Attributes:
        kernels: the sides of the convolutions' kernels, which are the first layers.
    """

    layers: tuple[tuple[np.ndarray, np.ndarray], ...]
    kernels: tuple[int, ...]

    @classmethod
    def of(cls, weights: Mapping[str, np.ndarray], dtype: type = np.float32) -> "Actor":
        """Return the actor of the weights that training.pixels.network.weights_for_acting gives."""
        weights = {name: array.astype(dtype) for name, array in weights.items()}
        layers, kernels = [], []
        while f"convolution{len(layers)}.weight" in weights:
            place = len(layers)
            kernel = weights[f"convolution{place}.weight"]  # (filters, channels, height, width)
            filters = len(kernel)
            kernels.append(kernel.shape[-1])
            if place:  # a layer's output has its channels last
                kernel = kernel.transpose(0, 2, 3, 1)
            layers.append((_matrix(kernel), weights[f"convolution{place}.bias"]))
        side = side_after(tuple(kernels))
        hidden = weights["hidden.weight"].reshape(-1, filters, side, side)
        layers.append((_matrix(hidden.transpose(0, 2, 3, 1)), weights["hidden.bias"]))
        layers.append((_matrix(weights["values.weight"]), weights["values.bias"]))
        return cls(tuple(layers), tuple(kernels))

    def values(self, stacks: np.ndarray) -> np.ndarray:
        """Return the values, (n, actions), of (n, stack, 84, 84) uint8 stacks."""
        features = stacks
        for place, (kernel, stride) in enumerate(zip(self.kernels, STRIDES, strict=False)):
            axes = (2, 3) if place == 0 else (1, 2)
            windows = sliding_window_view(features, (kernel, kernel), axis=axes)
            if place == 0:  # (n, channels, rows, columns, kernel, kernel)
                windows = windows[:, :, ::stride, ::stride].transpose(0, 2, 3, 1, 4, 5)
            else:  # (n, rows, columns, channels, kernel, kernel)
                windows = windows[:, ::stride, ::stride].transpose(0, 1, 2, 4, 5, 3)
            rows = np.empty(windows.shape, self.layers[0][0].dtype)
            rows[...] = windows
            features = self._relu(place, rows.reshape(-1, len(self.layers[place][0])))
            features = features.reshape(*windows.shape[:3], -1)
        matrix, bias = self.layers[-1]
        return self._relu(-2, features.reshape(len(stacks), -1)) @ matrix + bias

    def _relu(self, place: int, rows: np.ndarray) -> np.ndarray:
        """Return a layer's output, ReLU included."""
        matrix, bias = self.layers[place]
        output = rows @ matrix
        output += bias
        return np.maximum(output, 0, out=output)


def _matrix(weights: np.ndarray) -> np.ndarray:
    """Return a layer's weights, (outputs, ...), as (inputs, outputs)."""
    return np.ascontiguousarray(weights.reshape(len(weights), -1).T)
