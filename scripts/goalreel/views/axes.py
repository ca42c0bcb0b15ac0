"""The page around the phase plane: where a state stands on it, axes, ticks, goal line and legend.

What is drawn on the plane stands in phase, how text becomes pixels in lettering.
"""

from dataclasses import dataclass

import numpy as np

from goalreel.environments.registry import MAX_POSITION, MAX_SPEED, MIN_POSITION
from goalreel.errors import GoalreelError
from goalreel.pictures.text import Colour, lettering

SIZE = (600, 400)

# The plot's edges and sizes in pixels of a picture of 600x400; other pictures scale them.
_LEFT, _TOP, _RIGHT, _BOTTOM = 72, 54, 582, 342
_HEAD, _LETTERS, _SMALL, _TICK, _GAP = 10, 15, 13, 4, 5
_RAMP, _BAR = 84, 9  # width and height of the legend's colours
_AROUND = 0.04  # of an axis's range, left free beyond each of its ends

_POSITIONS = (-1.2, -0.9, -0.6, -0.3, 0.0, 0.3, 0.6)
_VELOCITIES = (-0.06, -0.03, 0.0, 0.03, 0.06)
_PAPER, _INK, _PALE, _GOAL = (255, 255, 255), (38, 38, 42), (232, 233, 237), (96, 98, 106)
# From violet-blue to amber: lightness rises all the way, so that it can be read without hues.
_COLOURS = ((58, 28, 128), (40, 88, 156), (20, 138, 142), (88, 178, 92), (228, 182, 36))


def colours(values: np.ndarray) -> np.ndarray:
    """Return a colour for each of `values`, from the least to the greatest: (n, 3) uint8."""
    low, high = values.min(), values.max()
    place = (values - low) / max(high - low, 1) * (len(_COLOURS) - 1)
    channels = [np.interp(place, range(len(_COLOURS)), c) for c in zip(*_COLOURS, strict=True)]
    return np.rint(np.stack(channels, axis=1)).astype(np.uint8)


@dataclass(frozen=True)
class Axes:
    """A picture of `size`, (width, height), and the plot on it."""

    size: tuple[int, int] = SIZE

    def __post_init__(self):
        """Raise GoalreelError for a size that no video can have or no text can be read at."""
        width, height = self.size
        if width % 2 or height % 2 or self.scale < 0.5:
            raise GoalreelError(
                f"the size {width}x{height} is not allowed; allowed: even numbers, "
                f"{SIZE[0] // 2}x{SIZE[1] // 2} or more"
            )

    @property
    def scale(self) -> float:
        """How many pixels are one of a picture of 600x400."""
        return min(self.size[0] / SIZE[0], self.size[1] / SIZE[1])

    @property
    def box(self) -> tuple[int, int, int, int]:
        """The plot's left, top, right and bottom in pixels; the last two lie outside."""
        width, height = self.size
        right, bottom = width - self.px(SIZE[0] - _RIGHT), height - self.px(SIZE[1] - _BOTTOM)
        return self.px(_LEFT), self.px(_TOP), right, bottom

    def px(self, pixels: float) -> int:
        """Return a length of a picture of 600x400 in whole pixels of this one, at least 1."""
        return max(round(pixels * self.scale), 1)

    def places(self, states: np.ndarray) -> np.ndarray:
        """Return where states, (..., 2), stand: (..., 2) float64, pixels from the plot's corner."""
        left, top, right, bottom = self.box
        low, high = np.array([MIN_POSITION, -MAX_SPEED]), np.array([MAX_POSITION, MAX_SPEED])
        margin = (high - low) * _AROUND
        share = (states - low + margin) / (high - low + 2 * margin)
        return share * [right - left, top - bottom] + [0, bottom - top]

    def ground(self, goal_position: float, finer: int):
        """Return the plot's empty area as an image, `finer` times larger: grid and goal line."""
        from PIL import Image, ImageDraw

        left, top, right, bottom = self.box
        wide, high = (right - left) * finer, (bottom - top) * finer
        image = Image.new("RGB", (wide, high), _PAPER)
        pen = ImageDraw.Draw(image)
        line = self.px(1) * finer

        def fine(position: float, velocity: float) -> tuple[int, int]:
            # On whole pixels of the reduced picture, so that the lines are crisp.
            x, y = self.places(np.array([position, velocity])).tolist()
            return (int(x) - self.px(1) // 2) * finer, (int(y) - self.px(1) // 2) * finer

        for position in _POSITIONS:
            x, _ = fine(position, 0)
            pen.rectangle((x, 0, x + line - 1, high), fill=_PALE)
        for velocity in _VELOCITIES:
            _, y = fine(0, velocity)
            pen.rectangle((0, y, wide, y + line - 1), fill=_PALE)
        x, _ = fine(goal_position, 0)
        for y in range(0, high, 8 * line):
            pen.rectangle((x, y, x + line - 1, y + 5 * line - 1), fill=_GOAL)
        return image

    def page(self, goal_position: float, steps: np.ndarray) -> np.ndarray:
        """Return all that never changes but the plot's area: (height, width, 3) uint8.

        steps: (trajectories,) integers, which the legend explains.
        """
        width, height = self.size
        page = np.full((height, width, 3), _PAPER, np.uint8)
        left, top, right, bottom = self.box
        line, tick, gap = self.px(1), self.px(_TICK), self.px(_GAP)
        page[top : bottom + line, left - line : left] = _INK
        page[bottom : bottom + line, left - line : right] = _INK
        small = self.text(f"{0:.2f}", _SMALL).shape[0]
        for position in _POSITIONS:
            x = left + int(self.places(np.array([position, 0]))[0]) - line // 2
            page[bottom : bottom + tick, x : x + line] = _INK
            self._put(page, self.text(f"{position:.1f}", _SMALL), x, bottom + tick + 1, 0.5)
        for velocity in _VELOCITIES:
            y = top + int(self.places(np.array([0, velocity]))[1]) - line // 2
            page[y : y + line, left - tick : left] = _INK
            self._put(page, self.text(f"{velocity:.2f}", _SMALL), left - tick - gap, y, 1, 0.5)
        below = bottom + tick + small + gap
        self._put(page, self.text("position", _LETTERS), (left + right) // 2, below, 0.5)
        upwards = np.rot90(self.text("velocity", _LETTERS))
        self._put(page, upwards, self.px(_HEAD), (top + bottom) // 2, 0, 0.5)
        x = left + int(self.places(np.array([goal_position, 0]))[0])
        self._put(page, self.text("goal", _SMALL, _GOAL), x, top - 1, 0.5, 1)
        self._put_legend(page, steps)
        return page

    def write_head(self, page: np.ndarray, words: str) -> None:
        """Write a line at the top left of a page."""
        self._put(page, self.text(words, _LETTERS), self.px(_HEAD), self.px(_HEAD))

    def text(self, words: str, size: float, ink: Colour = _INK) -> np.ndarray:
        """Return words as pixels; `size` is that of a picture of 600x400."""
        return lettering(words, size * self.scale, ink, _PAPER)

    def _put_legend(self, page: np.ndarray, steps: np.ndarray) -> None:
        """Put "steps to the goal", the colours, and what their ends mean, at the top right."""
        right, gap = self.box[2], self.px(_GAP)
        low, high = int(steps.min()), int(steps.max())
        across = self.px(_RAMP if high > low else _BAR)
        ramp = colours(np.linspace(low, high, across) if high > low else np.full(across, low))
        bar = np.repeat(ramp[None], self.px(_BAR), axis=0)
        middle = self.px(_HEAD) + self.text("0", _LETTERS).shape[0] // 2
        parts = [self.text(f"{high} steps to the goal", _SMALL), bar]
        parts += [self.text(f"{low}", _SMALL)] if high > low else []
        for part in parts:
            self._put(page, part, right, middle, 1, 0.5)
            right -= part.shape[1] + gap

    @staticmethod
    def _put(page, pixels, x: int, y: int, along: float = 0, down: float = 0) -> None:
        """Copy pixels to a page so that (x, y) lies at these shares of their width and height."""
        top, left = y - round(down * pixels.shape[0]), x - round(along * pixels.shape[1])
        page[top : top + pixels.shape[0], left : left + pixels.shape[1]] = pixels
