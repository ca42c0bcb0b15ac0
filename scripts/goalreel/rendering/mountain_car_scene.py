"""The geometry of Gymnasium's Mountain Car scene: which picture a position gives.

Gymnasium truncates the car's corners and wheel centres to integers before it draws them, so a
picture is a function of twelve small integers, its *key*, and there are only about 6,700 of them.
Source: `render` in gymnasium/envs/classic_control/mountain_car.py (1.4.0), whose order of
operations is kept.
"""

import math

import numpy as np

from goalreel.environments.registry import MAX_POSITION, MIN_POSITION, EnvTraits

WIDTH, HEIGHT = 600, 400
SCALE = WIDTH / (MAX_POSITION - MIN_POSITION)  # pixels per unit of position
CLEARANCE = 10
WHEEL_RADIUS = 8
# Four corners of the car and two wheel centres, relative to the foot of the car, in pixels.
_POINTS = ((-20, 0), (-20, 20), (20, 20), (20, 0), (10, 0), (-10, 0))


def height(positions):
    """Return the hill's height at `positions`, in units of position (`_height` of the source)."""
    return np.sin(3 * positions) * 0.45 + 0.55


def flag_foot(car: EnvTraits) -> tuple[int, int]:
    """Return where the flag stands: x and y, truncated to integers as in Gymnasium."""
    x = int((car.goal_position - MIN_POSITION) * SCALE)
    return x, int(height(car.goal_position) * SCALE)


def keys(positions: np.ndarray) -> np.ndarray:
    """Return the pictures' keys: (n, 12) int64, x and y of four corners and two wheels.

    positions: (n,) float64 or float32. The dtype matters, as in Gymnasium: with a float32 state
    the products are rounded to float32 on the way, and a corner may fall on the next pixel.
    """
    dtype = positions.dtype
    tilt = np.cos((3 * positions).astype(np.float64))
    # pygame's Vector2.rotate_rad first brings the angle into [0, 2 pi).
    tilt = np.where(tilt < 0, tilt + 2 * math.pi, tilt)
    cos, sin = np.cos(tilt), np.sin(tilt)
    foot = (positions - MIN_POSITION) * SCALE
    ground = height(positions) * SCALE
    coordinates = []
    for x, y in _POINTS:
        across = (cos * x - sin * y).astype(dtype) + foot
        # A Python float meets a NumPy scalar here, and is rounded to its dtype before the sum.
        up = ((sin * x + cos * y) + CLEARANCE).astype(dtype) + ground
        coordinates += [across.astype(np.int64), up.astype(np.int64)]
    return np.stack(coordinates, axis=1)


def all_keys(car: EnvTraits) -> np.ndarray:
    """Return every key that a position of the car can give: (pictures, 12) int64, sorted."""
    dtypes = [np.float64, np.float32] if car.float32_states else [np.float64]
    return np.unique(np.concatenate([keys(distinct_positions(dtype)) for dtype in dtypes]), axis=0)


def distinct_positions(dtype: type) -> np.ndarray:
    """Return a position of `dtype` for each picture.

    They are found where neighbouring positions differ in their keys, down to neighbouring floats.
    """
    positions = np.unique(np.linspace(MIN_POSITION, MAX_POSITION, 200_001).astype(dtype))
    found, pairs = [], np.stack([positions[:-1], positions[1:]])
    pair_keys = keys(positions)
    pair_keys = np.stack([pair_keys[:-1], pair_keys[1:]])
    while pairs.size:
        differ = (pair_keys[0] != pair_keys[1]).any(axis=1)
        pairs, pair_keys = pairs[:, differ], pair_keys[:, differ]
        middle = (pairs.sum(axis=0) / 2).astype(dtype)
        between = (middle != pairs).all(axis=0)
        found.append(pairs[:, ~between].ravel())
        pairs, pair_keys, middle = pairs[:, between], pair_keys[:, between], middle[between]
        pairs = np.hstack([[pairs[0], middle], [middle, pairs[1]]])
        middle_keys = keys(middle)
        pair_keys = np.hstack([[pair_keys[0], middle_keys], [middle_keys, pair_keys[1]]])
    candidates = np.concatenate(found)
    _, first = np.unique(keys(candidates), axis=0, return_index=True)
    return candidates[first]
