"""Gymnasium's style: Mountain Car's frames by the pygame calls of Gymnasium's renderer.

Source: `render` in gymnasium/envs/classic_control/mountain_car.py (1.4.0): the same calls in the
same order. pygame-ce's version shapes the pixels.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from goalreel.environments.drawing.kept_surface import KeptSurface
from goalreel.environments.registry import EnvTraits, describe
from goalreel.rendering import mountain_car_scene as scene

_BLACK, _GREY, _YELLOW = (0, 0, 0), (128, 128, 128), (204, 204, 0)


@dataclass(frozen=True)
class GymnasiumStyle:
    """Pixel for pixel what `env.render()` draws.

    A position's picture is known by its key, a few small integers.
    """

    env: str

    @property
    def float32_states(self) -> bool:
        """Whether a key depends on states' precision, which turn float32 at the first step."""
        return describe(self.env).float32_states

    def keys(self, positions: np.ndarray) -> np.ndarray:
        """Return the keys, (n, 12) int64, of `positions`, (n,) float64 or float32."""
        return scene.keys(positions)

    def all_keys(self) -> np.ndarray:
        """Return every key, (pictures, 12) int64, sorted."""
        return scene.all_keys(describe(self.env))

    def draw(self, keys: np.ndarray) -> tuple[np.ndarray, Iterator[tuple[int, int, np.ndarray]]]:
        """Draw the empty track and the car at each of `keys`, (n, k) integers.

        Returns the track, (H, W, 3) uint8, and an iterator of (top, left, pixels): a box of the
        picture, (h, w, 3) uint8, outside of which it equals the track.
        """
        kept, car = KeptSurface((scene.HEIGHT, scene.WIDTH)), describe(self.env)
        from pygame import draw

        across = np.linspace(scene.MIN_POSITION, scene.MAX_POSITION, 100)
        x, y = (across - scene.MIN_POSITION) * scene.SCALE, scene.height(across) * scene.SCALE
        draw.aalines(kept.surface, points=list(zip(x, y, strict=True)), closed=False, color=_BLACK)
        kept.keep()
        # A flag drawn over itself would have a darker edge, which is antialiased.
        flag = _draw_flag(kept, car)
        track = kept.read(kept.surface.get_rect())
        kept.mend([flag])
        return track, _boxes(kept, car, keys)


def _boxes(
    kept: KeptSurface, car: EnvTraits, keys: np.ndarray
) -> Iterator[tuple[int, int, np.ndarray]]:
    for key in keys.tolist():
        box, flag = _draw_car(kept, key), _draw_flag(kept, car)
        yield scene.HEIGHT - box.bottom, box.left, kept.read(box)
        kept.mend([box, flag])


def _draw_car(kept: KeptSurface, key: list[int]):
    """Draw the car and return the box around it."""
    points = list(zip(key[0::2], key[1::2], strict=True))
    spanned = kept.polygon(points[:4], _BLACK)
    for x, y in points[4:]:
        spanned += kept.disc(x, y, scene.WHEEL_RADIUS, _GREY)
    return kept.box(spanned)


def _draw_flag(kept: KeptSurface, car: EnvTraits):
    """Draw the flag and return the box around it."""
    from pygame import gfxdraw

    x, foot = scene.flag_foot(car)
    top = foot + 50
    cloth = [(x, top), (x, top - 10), (x + 25, top - 5)]
    gfxdraw.vline(kept.surface, x, foot, top, _BLACK)
    return kept.box([(x, foot), *kept.polygon(cloth, _YELLOW)])
