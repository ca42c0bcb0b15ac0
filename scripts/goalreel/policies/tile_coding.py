"""Tile coding: which tiles of several shifted grids an observation of MountainCar-v0 lies in.

Sources: R. S. Sutton and A. G. Barto, "Reinforcement Learning: An Introduction" (2nd edition),
9.5.4: grids are shifted by odd multiples, 1 and 3, of a fraction of a tile, which spreads the tiles
around a point evenly. Every tile has an index of its own, without hashing. What is learned on the
tiles stands in sarsa and learned.
"""

import numpy as np

from goalreel.environments.registry import MAX_POSITION, MAX_SPEED, MIN_POSITION

TILINGS = 8
_ACROSS = 8  # tiles of a grid over the whole range of a variable
_ALONG = _ACROSS + 1  # a shifted grid needs one more to cover the range
TILES = TILINGS * _ALONG * _ALONG

_LOW = np.array([MIN_POSITION, -MAX_SPEED])
# Places are counted in eighths of a tile: all shifts are whole numbers of them, and exact.
_UNITS = _ACROSS * TILINGS
# Division by it, unlike a product with its inverse, brings zero velocity to a whole number exactly.
_UNIT = (np.array([MAX_POSITION, MAX_SPEED]) - _LOW) / _UNITS
_SHIFTS = np.arange(TILINGS)[:, None] * np.array([1, 3]) % TILINGS  # (tilings, 2)
_FIRST = np.arange(TILINGS) * (_ALONG * _ALONG)  # (tilings,) the first tile of each grid


def features(observations: np.ndarray) -> np.ndarray:
    """Return the tiles of each observation: (n, tilings) int64 in [0, TILES), one of each grid.

    observations: (n, 2) float32, position and velocity. The bounds, and what rounding to float32
    brings beyond them, count as the places next to them.
    """
    places = np.floor((observations.astype(np.float64) - _LOW) / _UNIT).astype(np.int64)
    places = np.clip(places, 0, _UNITS - 1)
    cells = (places[:, None, :] + _SHIFTS) // TILINGS  # (n, tilings, 2)
    return _FIRST + cells[..., 0] * _ALONG + cells[..., 1]
