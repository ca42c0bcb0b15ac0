"""The Q-network of pixels in NumPy (1.26 or 2), for films and collectors without PyTorch.

A convolution is a matrix product: each window is copied into a row (K. Chellapilla et al., "High
Performance Convolutional Neural Networks for Document Processing", 2006). Between layers the
channels come last, because the products have them there.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

SIDE = 84  # pixels, of an observation's frames
# Convolutions (filters, side of the kernel, stride) and units of the hidden layer, by name, from
# V. Mnih et al., "Playing Atari with Deep Reinforcement Learning" (2013), section 4.1, and of
# "Human-level control through deep reinforcement learning" (2015), "Model architecture".
NETWORKS = {
    "small": (((16, 8, 4), (32, 4, 2)), 256),
    "nature": (((32, 8, 4), (64, 4, 2), (64, 3, 1)), 512),
}
STRIDES = (4, 2, 1)  # of the convolutions of both


def side_after(kernels: tuple[int, ...]) -> int:
    """Return the side of the last convolution's output, given the sides of the kernels."""
    side = SIDE
    for kernel, stride in zip(kernels, STRIDES, strict=False):
        side = (side - kernel) // stride + 1
    return side


@dataclass(frozen=True)
class Actor:
    """The layers of a network, each a matrix (inputs, outputs) and a bias (outputs,).

    Attributes:
        layers: all of the same float type; the convolutions come first.
        kernels: the sides of the convolutions' kernels.
    """

    layers: tuple[tuple[np.ndarray, np.ndarray], ...]
    kernels: tuple[int, ...]

    @classmethod
    def of(cls, weights: Mapping[str, np.ndarray], dtype: type = np.float32) -> "Actor":
        """Return the network of weights from `training.pixels.network.weights_for_acting`."""
        weights = {name: array.astype(dtype) for name, array in weights.items()}
        layers, kernels = [], []
        while f"convolution{len(layers)}.weight" in weights:
            place = len(layers)
            kernel = weights[f"convolution{place}.weight"]  # (filters, channels, height, width)
            filters = len(kernel)
            kernels.append(kernel.shape[-1])
            if place:  # the output of a layer has its channels last
                kernel = kernel.transpose(0, 2, 3, 1)
            layers.append((_matrix(kernel), weights[f"convolution{place}.bias"]))
        side = side_after(tuple(kernels))
        hidden = weights["hidden.weight"].reshape(-1, filters, side, side)
        layers.append((_matrix(hidden.transpose(0, 2, 3, 1)), weights["hidden.bias"]))
        layers.append((_matrix(weights["values.weight"]), weights["values.bias"]))
        return cls(tuple(layers), tuple(kernels))

    def values(self, stacks: np.ndarray) -> np.ndarray:
        """Return the action values, (n, actions), of (n, stack, 84, 84) uint8 stacks."""
        features = stacks
        for place, (kernel, stride) in enumerate(zip(self.kernels, STRIDES, strict=False)):
            axes = (2, 3) if place == 0 else (1, 2)
            windows = sliding_window_view(features, (kernel, kernel), axis=axes)
            if place == 0:  # (n, channels, rows, columns, kernel, kernel)
                windows = windows[:, :, ::stride, ::stride].transpose(0, 2, 3, 1, 4, 5)
            else:  # (n, rows, columns, channels, kernel, kernel)
                windows = windows[:, ::stride, ::stride].transpose(0, 1, 2, 4, 5, 3)
            rows = windows.astype(self.layers[0][0].dtype, order="C")
            features = self._relu(place, rows.reshape(-1, len(self.layers[place][0])))
            features = features.reshape(*windows.shape[:3], -1)
        matrix, bias = self.layers[-1]
        return self._relu(-2, features.reshape(len(stacks), -1)) @ matrix + bias

    def _relu(self, place: int, rows: np.ndarray) -> np.ndarray:
        """Return the output of a layer, with ReLU."""
        matrix, bias = self.layers[place]
        output = rows @ matrix
        output += bias
        return np.maximum(output, 0, out=output)


def _matrix(weights: np.ndarray) -> np.ndarray:
    """Return weights (outputs, ...) as a matrix (inputs, outputs)."""
    return np.ascontiguousarray(weights.reshape(len(weights), -1).T)
