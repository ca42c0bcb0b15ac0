"""The vector style: Gymnasium's Mountain Car scene drawn by Pillow, antialiased and at any size.

The scene is 600x400 units with y upwards. An image depends on the car's position in quarters of a
unit. An image of another aspect ratio shows the scene as large as it fits, in the middle, and hill,
sky and ground continue to the borders. Shapes are polygons, drawn larger and reduced, which
smooths their edges.

Text and lines have the contrast of WCAG 2.2 (1.4.3 and 1.4.11: ratios of 4.5 and 3). Car and flag
also differ for color-blind viewers: their blue and orange are Okabe and Ito's
(jfly.uni-koeln.de/color).
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from goalreel.environments.registry import describe
from goalreel.rendering.gymnasium_style import (
    CLEARANCE,
    HEIGHT,
    MIN_POSITION,
    SCALE,
    WHEEL_RADIUS,
    WIDTH,
    Boxes,
    flag_foot,
    height,
)

STEPS = 4  # images per unit of the scene's width
_SAMPLES = 8  # samples of a pixel in each direction
_STRIP = 64  # columns of the hill drawn at a time; all at once would take gigabytes
# Gymnasium's lines run through the middles of pixels, half a unit from their coordinates, and its
# shapes include the pixels of their corners, half a unit beyond.
_HALF = 0.5
_HILL_LINE, _POLE = 2.5, 2.0  # widths in units
_BANDS = 5  # bands of the sky
_FLAG_HEIGHT, _CLOTH = 50, ((0, _HALF), (0, -10 - _HALF), (25 + 2 * _HALF, -5))

Color = tuple[int, int, int]


# The colors of the scene's parts in the light and the dark theme: (red, green, blue), 0 to 255.
_PARTS: dict[str, tuple[Color, Color]] = {
    "ink": ((31, 41, 51), (236, 240, 243)),  # text
    "paper": ((252, 252, 250), (17, 21, 27)),  # below text, and the ground
    "sky": ((196, 221, 236), (38, 58, 82)),  # at the horizon
    "line": ((62, 78, 92), (157, 173, 189)),  # the hill and the flag's pole
    "body": ((0, 114, 178), (86, 180, 233)),
    "window": ((226, 240, 248), (20, 40, 60)),
    "tyre": ((31, 41, 51), (226, 232, 238)),
    "hub": ((226, 232, 236), (52, 66, 82)),
    "cloth": ((213, 94, 0), (230, 159, 0)),  # the flag
}
Theme = NamedTuple("Theme", [(part, Color) for part in _PARTS])
_LIGHT, _DARK = zip(*_PARTS.values(), strict=True)
THEMES = {"light": Theme(*_LIGHT), "dark": Theme(*_DARK)}

Shape = tuple[np.ndarray, Color]  # a polygon, (points, 2) float64, and its color


@dataclass(frozen=True)
class VectorStyle:
    """Images of the environment `env` of `size`, (width, height)."""

    env: str
    size: tuple[int, int]
    theme: Theme

    float32_states: ClassVar[bool] = False  # a float32's rounding moves no image here

    @cached_property
    def clear_rows(self) -> tuple[int, int]:
        """The number of rows at the top and at the bottom that neither car nor hill reaches."""
        outlines = [self._to_pixels(points) for x in range(WIDTH) for points, _ in self._car(x)]
        valley = [(0, height(-math.pi / 6) * SCALE + _HALF - _HILL_LINE / 2)]
        rows = np.concatenate([*outlines, self._to_pixels(np.array(valley))])[:, 1]
        # One more pixel for positions in between, and for samples at a polygon's edge.
        return int(rows.min()) - 1, self.size[1] - math.ceil(rows.max()) - 1

    def keys(self, positions: np.ndarray) -> np.ndarray:
        """Return the keys, (n, 1) int64, of images at `positions`, (n,) float."""
        across = (np.asarray(positions, np.float64) - MIN_POSITION) * SCALE
        steps = np.clip(np.floor(across * STEPS), 0, WIDTH * STEPS - 1)
        return steps.astype(np.int64)[:, None]

    def all_keys(self) -> np.ndarray:
        """Return every key, (images, 1) int64, sorted."""
        return np.arange(WIDTH * STEPS)[:, None]

    def draw(self, keys: np.ndarray) -> tuple[np.ndarray, Boxes]:
        """Render the empty track and the car at each of `keys`; see GymnasiumStyle.draw."""
        hill, flag = self._hill(), self._draw_shapes(self._flag())
        track = hill.copy()
        track.paste(flag[0], flag[1:], flag[0])
        return np.asarray(track), self._boxes(hill, flag, keys)

    def _boxes(self, hill, flag: tuple, keys: np.ndarray) -> Boxes:
        for (key,) in keys.tolist():
            # The middle of the key's quarter unit: at most an eighth from the car, and within the
            # whole unit, at whose border Gymnasium's image changes.
            car, left, top = self._draw_shapes(self._car((key + 0.5) / STEPS))
            image = hill.crop((left, top, left + car.width, top + car.height))
            image.paste(car, (0, 0), car)
            image.paste(flag[0], (flag[1] - left, flag[2] - top), flag[0])
            yield top, left, np.asarray(image)

    @property
    def _scale(self) -> float:
        """Pixels per unit."""
        return min(self.size[0] / WIDTH, self.size[1] / HEIGHT)

    def _to_pixels(self, points: np.ndarray) -> np.ndarray:
        """Convert points of the scene, (n, 2), to pixels of the image, y downwards."""
        middle = np.array([WIDTH, HEIGHT]) / 2
        return (points - middle) * (self._scale, -self._scale) + np.array(self.size) / 2

    def _draw_shapes(self, shapes: list[Shape], columns: tuple[int, int] | None = None) -> tuple:
        """Return shapes of the scene as a transparent image, its left and its top."""
        from PIL import Image, ImageDraw

        pixels = [self._to_pixels(points) for points, _ in shapes]
        points = np.concatenate(pixels)
        low = np.maximum(np.floor(points.min(axis=0)).astype(int) - 1, 0)
        high = np.minimum(np.ceil(points.max(axis=0)).astype(int) + 1, self.size)
        (left, top), (right, bottom) = low.tolist(), high.tolist()
        left, right = columns or (left, right)
        large = Image.new("RGBA", ((right - left) * _SAMPLES, (bottom - top) * _SAMPLES))
        pen = ImageDraw.Draw(large)
        for points, (_, color) in zip(pixels, shapes, strict=True):
            samples = np.floor((points - (left, top)) * _SAMPLES)
            pen.polygon(samples.astype(int).ravel().tolist(), fill=color)
        return large.reduce(_SAMPLES), left, top

    def _hill(self):
        """Return an image of the sky, the ground and the hill's line."""
        from PIL import Image

        width, rows = self.size
        image = Image.fromarray(np.broadcast_to(self._sky()[:, None], (rows, width, 3)).copy())
        # Wider than the image, so that the ends of the line stay out of it.
        half = width / self._scale / 2 + _HILL_LINE
        ground = self._ground(WIDTH / 2 - half, WIDTH / 2 + half)
        for left in range(0, width, _STRIP):
            strip, *place = self._draw_shapes(ground, (left, min(left + _STRIP, width)))
            image.paste(strip, tuple(place), strip)
        return image

    def _sky(self) -> np.ndarray:
        """Return the color of each row, (H, 3) uint8: paper behind the text, darker bands below.

        Bands are flat, because an encoder would turn a gradient into bands of wrong colors.
        """
        (top, bottom), rows = self.clear_rows, self.size[1]
        depth = np.clip((np.arange(rows)[:, None] + 1 - top) / (rows - top - bottom), 0, 1)
        depth = np.ceil(depth * _BANDS) / _BANDS
        paper, sky = np.array(self.theme.paper), np.array(self.theme.sky)
        return np.round(paper + (sky - paper) * depth).astype(np.uint8)

    def _ground(self, left: float, right: float) -> list[Shape]:
        x = np.arange(math.floor(2 * left), math.ceil(2 * right) + 1) / 2
        position = MIN_POSITION + (x - _HALF) / SCALE
        y = height(position) * SCALE + _HALF
        slope = 3 * 0.45 * np.cos(3 * position)
        across = np.stack([-slope, np.ones_like(x)]) / np.hypot(slope, 1) * _HILL_LINE / 2
        above, below = (np.stack([x, y]) + across).T, (np.stack([x, y]) - across).T
        depths = np.array([(x[-1], -1e4), (x[0], -1e4)])
        return [
            (np.concatenate([np.stack([x, y]).T, depths]), self.theme.paper),
            (np.concatenate([above, below[::-1]]), self.theme.line),
        ]

    def _flag(self) -> list[Shape]:
        x, foot = (float(place) + _HALF for place in flag_foot(describe(self.env)))
        top = foot + _FLAG_HEIGHT
        cloth = np.array(_CLOTH) + (x, top)
        pole = _rounded(x - _POLE / 2, foot, x + _POLE / 2, top + _POLE / 2, _POLE / 2)
        return [(cloth, self.theme.cloth), (pole, self.theme.line)]

    def _car(self, x: float) -> list[Shape]:
        """Return the shapes of the car with its foot at `x`, in units of the scene."""
        position, colors = MIN_POSITION + x / SCALE, self.theme
        tilt = math.cos(3 * position)  # Gymnasium uses the cosine itself as the angle
        turn = np.array([[math.cos(tilt), math.sin(tilt)], [-math.sin(tilt), math.cos(tilt)]])
        foot = (x, height(position) * SCALE + CLEARANCE)
        body = _rounded(-20 - _HALF, -_HALF, 20 + _HALF, 20 + _HALF, 5)
        shapes = [(body, colors.body)]
        for side in (-1, 1):
            left, right = sorted((1.25 * side, 15.5 * side))
            shapes.append((_rounded(left, 10.5, right, 16.5, 2), colors.window))
        for axle in (-10, 10):
            shapes.append((_disc(axle, 0, WHEEL_RADIUS + _HALF), colors.tyre))
            shapes.append((_disc(axle, 0, 3), colors.hub))
        return [(points @ turn + foot, color) for points, color in shapes]


def _disc(x: float, y: float, radius: float) -> np.ndarray:
    """Return the outline of a disc, (64, 2), exact to 1/16 pixel at a radius of 50 pixels."""
    angle = np.linspace(0, 2 * math.pi, 64, endpoint=False)
    return np.stack([x + radius * np.cos(angle), y + radius * np.sin(angle)], axis=1)


def _rounded(left: float, bottom: float, right: float, top: float, radius: float) -> np.ndarray:
    """Return the outline of a rectangle with rounded corners, (68, 2)."""
    corners = [(right, top), (left, top), (left, bottom), (right, bottom)]
    middle, points = np.array([left + right, bottom + top]) / 2, []
    for number, corner in enumerate(np.array(corners)):
        angle = np.linspace(number, number + 1, 17) * math.pi / 2
        center = corner + np.sign(middle - corner) * radius
        points.append(center + radius * np.stack([np.cos(angle), np.sin(angle)], axis=1))
    return np.concatenate(points)
