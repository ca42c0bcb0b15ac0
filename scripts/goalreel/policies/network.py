"""Greedy actions of a trained network, the same on every machine and in every batch.

The last bits of a matrix product depend on the library, the processor and the number of rows, and
they could decide between two actions. `act` therefore computes values in float64. If the best value
leads by no more than the possible rounding error, `act` adds exactly (`math.fsum`), which is rare.
This module does not need PyTorch.
"""

import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from goalreel.environments.registry import MAX_POSITION, MAX_SPEED, MIN_POSITION

_LARGEST = np.array([max(abs(MIN_POSITION), abs(MAX_POSITION)), MAX_SPEED])
_UNIT = 2.0**-53  # the roundoff of float64


@dataclass(frozen=True)
class Network:
    """A perceptron: a matrix (outputs, inputs) and a bias (outputs,) per layer."""

    layers: tuple[tuple[np.ndarray, np.ndarray], ...]

    @classmethod
    def of(cls, weights: Mapping[str, np.ndarray], dtype: type = np.float64) -> "Network":
        """Return the network of the weights of `learner.network`, named as in PyTorch."""
        weights = {name: array.astype(dtype) for name, array in weights.items()}
        numbers = sorted({int(name.split(".")[0]) for name in weights})
        return cls(tuple((weights[f"{n}.weight"], weights[f"{n}.bias"]) for n in numbers))

    def act(self, observations: np.ndarray) -> np.ndarray:
        """Return the best actions, (n,) int8, for (n, 2) observations; the first of equal ones."""
        values = self.values(observations.astype(np.float64))
        best = values.argmax(axis=1)
        ordered = np.sort(values, axis=1)
        close = ordered[:, -1] - ordered[:, -2] <= 2 * self.rounding
        for index in np.flatnonzero(close):
            best[index] = int(np.argmax(self.exact(observations[index])))
        return best.astype(np.int8)

    def values(self, obs: np.ndarray) -> np.ndarray:
        """Return the action values, (n, 3), of (n, 2) observations, in their dtype and rounded."""
        units = obs
        for place, (matrix, bias) in enumerate(self.layers):
            units = units @ matrix.T + bias
            if place < len(self.layers) - 1:
                np.maximum(units, 0, out=units)
        return units

    def exact(self, observation: np.ndarray) -> list[float]:
        """Return the action values of one observation, with each sum rounded only once."""
        units = [float(number) for number in observation]
        for place, (matrix, bias) in enumerate(self.layers):
            rows = zip(matrix.tolist(), bias.tolist(), strict=True)
            units = [math.fsum([b, *map(operator.mul, row, units)]) for row, b in rows]
            if place < len(self.layers) - 1:
                units = [max(unit, 0.0) for unit in units]
        return units

    @cached_property
    def rounding(self) -> float:
        """The maximum rounding error of a value, for every order of summation.

        N. J. Higham, "Accuracy and Stability of Numerical Algorithms" (2nd edition), 3.1: a sum of
        n products is off by up to n u / (1 - n u) times the sum of their sizes. The bound holds
        for all observations of MountainCar-v0.
        """
        size, error = _LARGEST, np.zeros(len(_LARGEST))
        for matrix, bias in self.layers:
            terms = matrix.shape[1] + 1
            off = terms * _UNIT / (1 - terms * _UNIT)
            largest = np.abs(matrix)
            grown = largest @ error
            size = largest @ size + np.abs(bias)
            error = grown + 2 * off * (size + grown)  # twice: this sum is rounded as well
        return float(error.max())
