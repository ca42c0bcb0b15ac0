"""Drawing a Mountain Car picture from its key, with the pygame calls of Gymnasium's renderer.

Source: `render` in gymnasium/envs/classic_control/mountain_car.py (1.4.0): the same calls in the
same order, but on one surface that is mended where the car stood, not painted anew. pygame-ce's
version shapes the pixels.
"""

import os
from collections.abc import Iterator

import numpy as np

from goalreel.environments.registry import Description
from goalreel.pictures.mountain_car_scene import (
    HEIGHT,
    MAX_POSITION,
    MIN_POSITION,
    SCALE,
    WHEEL_RADIUS,
    WIDTH,
    flag_foot,
    height,
)

_BLACK, _GREY, _YELLOW, _WHITE = (0, 0, 0), (128, 128, 128), (204, 204, 0), (255, 255, 255)


def draw(
    car: Description, keys: np.ndarray
) -> tuple[np.ndarray, Iterator[tuple[int, int, np.ndarray]]]:
    """Draw the empty track and the car at each of `keys`, (n, 12) integers.

    Returns the track, (H, W, 3) uint8, and an iterator of (top, left, pixels): a box of the
    picture, (h, w, 3) uint8, outside of which it equals the track.
    """
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # no screen is needed
    import pygame

    hill = pygame.Surface((WIDTH, HEIGHT))
    hill.fill(_WHITE)
    across = np.linspace(MIN_POSITION, MAX_POSITION, 100)
    points = zip((across - MIN_POSITION) * SCALE, height(across) * SCALE, strict=True)
    pygame.draw.aalines(hill, points=list(points), closed=False, color=_BLACK)
    track = hill.copy()
    _draw_flag(track, car)
    return _upright(track, track.get_rect()), _boxes(car, hill, keys)


def _boxes(car: Description, hill, keys: np.ndarray) -> Iterator[tuple[int, int, np.ndarray]]:
    canvas = hill.copy()
    for key in keys.tolist():
        _draw_car(canvas, key)
        flag = _draw_flag(canvas, car)
        box = _bounds(key).clip(canvas.get_rect())
        yield HEIGHT - box.bottom, box.left, _upright(canvas, box)
        # The flag goes too: drawn over itself, its antialiased edge would turn darker.
        canvas.blit(hill, box, box)
        canvas.blit(hill, flag, flag)


def _draw_car(surface, key: list[int]) -> None:
    from pygame import gfxdraw

    points = list(zip(key[0::2], key[1::2], strict=True))
    corners, wheels = points[:4], points[4:]
    gfxdraw.aapolygon(surface, corners, _BLACK)
    gfxdraw.filled_polygon(surface, corners, _BLACK)
    for x, y in wheels:
        gfxdraw.aacircle(surface, x, y, WHEEL_RADIUS, _GREY)
        gfxdraw.filled_circle(surface, x, y, WHEEL_RADIUS, _GREY)


def _draw_flag(surface, car: Description):
    """Draw the flag and return a rectangle around it."""
    from pygame import Rect, gfxdraw

    x, foot = flag_foot(car)
    top = foot + 50
    cloth = [(x, top), (x, top - 10), (x + 25, top - 5)]
    gfxdraw.vline(surface, x, foot, top, _BLACK)
    gfxdraw.aapolygon(surface, cloth, _YELLOW)
    gfxdraw.filled_polygon(surface, cloth, _YELLOW)
    return Rect(x - 1, foot - 1, 28, top - foot + 3)


def _bounds(key: list[int]):
    """Return a rectangle around all that the car's calls can touch."""
    from pygame import Rect

    margin = WHEEL_RADIUS + 2  # antialiasing reaches a pixel beyond the wheel
    left, top = min(key[0::2]) - margin, min(key[1::2]) - margin
    return Rect(left, top, max(key[0::2]) + margin - left + 1, max(key[1::2]) + margin - top + 1)


def _upright(surface, box) -> np.ndarray:
    """Return a box of the surface as (h, w, 3) uint8; the scene is drawn upside down."""
    from pygame import surfarray

    pixels = surfarray.pixels3d(surface)[box.left : box.right, box.top : box.bottom]
    return np.ascontiguousarray(pixels.transpose(1, 0, 2)[::-1])
