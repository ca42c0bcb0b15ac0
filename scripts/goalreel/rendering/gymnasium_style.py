"""Gymnasium's style of Mountain Car: the frames of `env.render()`, by the same pygame calls.

Gymnasium truncates the car's corners and wheel centers to integers before it draws them. A frame
is therefore a function of twelve small integers, its *key*, and there are only about 6,700 keys.
Source: `render` in gymnasium/envs/classic_control/mountain_car.py (1.4.0), with its order of
operations and calls. The pixels depend on the version of pygame-ce.
"""

import math
from collections.abc import Iterator

import numpy as np

from goalreel.environments.drawing.frame_surface import FrameSurface
from goalreel.environments.registry import MAX_POSITION, MIN_POSITION, EnvTraits, describe

WIDTH, HEIGHT = 600, 400
SCALE = WIDTH / (MAX_POSITION - MIN_POSITION)  # pixels per unit of position
CLEARANCE = 10
WHEEL_RADIUS = 8
_BLACK, _GRAY, _YELLOW = (0, 0, 0), (128, 128, 128), (204, 204, 0)
Boxes = Iterator[tuple[int, int, np.ndarray]]  # top, left and pixels
# Four corners of the car and two wheel centers, relative to the foot of the car, in pixels.
_POINTS = ((-20, 0), (-20, 20), (20, 20), (20, 0), (10, 0), (-10, 0))


def height(positions):
    """Return the hill's height at `positions`, in units of position (`_height` of the source)."""
    return np.sin(3 * positions) * 0.45 + 0.55


def keys(positions: np.ndarray) -> np.ndarray:
    """Return the keys of frames: (n, 12) int64, x and y of four corners and two wheels.

    positions: (n,) float64 or float32. The dtype matters, as in Gymnasium: a float32 state rounds
    the products to float32, and a corner may fall on the next pixel.
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
        # In Gymnasium a Python float plus a NumPy scalar: it is rounded to `dtype` first.
        up = ((sin * x + cos * y) + CLEARANCE).astype(dtype) + ground
        coordinates += [across.astype(np.int64), up.astype(np.int64)]
    return np.stack(coordinates, axis=1)


def distinct_positions(dtype: type) -> np.ndarray:
    """Return one position of `dtype` per distinct key, by bisection down to neighboring floats."""
    positions = np.unique(np.linspace(MIN_POSITION, MAX_POSITION, 50_001).astype(dtype))
    while True:
        found = keys(positions)
        differ = (found[1:] != found[:-1]).any(axis=1)
        middle = ((positions[:-1] + positions[1:]) / 2).astype(dtype)
        between = differ & (middle != positions[:-1]) & (middle != positions[1:])
        if not between.any():
            return positions[np.unique(found, axis=0, return_index=True)[1]]
        at_border = np.append(differ, True) | np.append(True, differ)
        positions = np.sort(np.concatenate([positions[at_border], middle[between]]))


def all_keys(env: str) -> np.ndarray:
    """Return every key that a position can have: (images, 12) int64, sorted."""
    dtypes = [np.float64, np.float32] if describe(env).float32_states else [np.float64]
    return np.unique(np.concatenate([keys(distinct_positions(d)) for d in dtypes]), axis=0)


def draw_frames(env: str, keys: np.ndarray) -> tuple[np.ndarray, Boxes]:
    """Return the empty track, (H, W, 3) uint8, and for each key a box with all that differs."""
    canvas, car = FrameSurface((HEIGHT, WIDTH)), describe(env)
    from pygame import draw

    across = np.linspace(MIN_POSITION, MAX_POSITION, 100)
    hill = zip((across - MIN_POSITION) * SCALE, height(across) * SCALE, strict=True)
    draw.aalines(canvas.surface, points=list(hill), closed=False, color=_BLACK)
    canvas.set_background()
    # Without `restore` the flag's antialiased edge would be drawn twice, and be darker.
    flag = _draw_flag(canvas, car)
    track = canvas.read(canvas.surface.get_rect())
    canvas.restore([flag])
    return track, _boxes(canvas, car, keys)


def _boxes(canvas: FrameSurface, car: EnvTraits, keys: np.ndarray) -> Boxes:
    for key in keys.tolist():
        points = list(zip(key[0::2], key[1::2], strict=True))
        spanned = canvas.polygon(points[:4], _BLACK)
        for x, y in points[4:]:
            spanned += canvas.disc(x, y, WHEEL_RADIUS, _GRAY)
        box, flag = canvas.box(spanned), _draw_flag(canvas, car)
        yield HEIGHT - box.bottom, box.left, canvas.read(box)
        canvas.restore([box, flag])


def _draw_flag(canvas: FrameSurface, car: EnvTraits):
    """Draw the flag and return the box around it."""
    from pygame import gfxdraw

    # Truncated to integers, as in Gymnasium.
    x = int((car.goal_position - MIN_POSITION) * SCALE)
    foot = int(height(car.goal_position) * SCALE)
    top = foot + 50
    cloth = [(x, top), (x, top - 10), (x + 25, top - 5)]
    gfxdraw.vline(canvas.surface, x, foot, top, _BLACK)
    return canvas.box([(x, foot), *canvas.polygon(cloth, _YELLOW)])
