"""Writing on a background: text as an opaque, even-aligned patch that fits under any layer.

Lengths are given for a picture of 600x400 and scaled as Mountain Car's scene is, which is in
the middle of a picture of another shape.
"""

from dataclasses import dataclass

import numpy as np

from goalreel.pictures.layers import Patches
from goalreel.pictures.text import text_mask

_COLUMNS, _ROWS = 600, 400
_SMALLEST = 8  # pixels of a font
_DARK, _LIGHT = (38, 38, 38), (242, 242, 242)


@dataclass(frozen=True)
class Canvas:
    """A background, (H, W, 3) uint8, to write on: dark on light, or light on dark."""

    background: np.ndarray

    @property
    def scale(self) -> float:
        """Pixels of this picture per pixel of one of 600x400."""
        height, width = self.background.shape[:2]
        return min(height / _ROWS, width / _COLUMNS)

    def scaled(self, length: float) -> int:
        """Return a length of the 600x400 picture in pixels of this one."""
        return round(length * self.scale)

    def centred(self, text: str, top: float, size: float) -> Patches:
        """Return one patch with a line of text in the middle: its top row, the font's size.

        It stays clear of Mountain Car's flag, and in the picture: long text is set smaller, then
        cut.
        """
        room = max(self.scaled(_COLUMNS - 80), 2)
        return self.line(text, self.scaled(top), size * self.scale, room)

    def line(self, text: str, top: int, size: float, room: int) -> Patches:
        """Return one patch with a line of text in the middle, all in this picture's pixels.

        room: how wide it may be.
        """
        mask = self._line(text, size, room)
        return self.stamp(mask, top, (self.background.shape[1] - mask.shape[1]) // 2)

    def text(self, text: str, top: int, left: int, size: float) -> Patches:
        """Return one patch with a line of text at a place, all in this picture's pixels."""
        room = max(self.background.shape[1] - left, 2)
        return self.stamp(self._line(text, size, room), top, left)

    def _line(self, text: str, size: float, room: int) -> np.ndarray:
        return text_mask(text, max(size, _SMALLEST), room)

    def stamp(self, mask: np.ndarray, top: int, left: int) -> Patches:
        """Return one patch that lays ink over the background: mask (h, w) uint8, 255 is all ink.

        top, left: in this picture's pixels; what reaches beyond it is cut.
        """
        rows, columns = self.background.shape[:2]
        top, left = min(max(top, 0), rows - 1), min(max(left, 0), columns - 1)
        t, lft = top & ~1, left & ~1
        b = min((top + mask.shape[0] + 1) & ~1, rows)
        r = min((left + mask.shape[1] + 1) & ~1, columns)
        covered = np.zeros((b - t, r - lft), np.uint8)
        y, x = top - t, left - lft
        inside = mask[: b - top, : r - left]
        covered[y : y + inside.shape[0], x : x + inside.shape[1]] = inside
        box = np.array([[t, lft, b - t, r - lft]], np.int32)
        under = self.background[t:b, lft:r].reshape(-1, 3)
        if (under == under[0]).all():
            under = under[:1]
        if len(under) == 1:  # one colour, of which each share of ink makes one
            return Patches(box, _inked(under, np.arange(256))[covered.reshape(-1)])
        return Patches(box, _inked(under, covered.reshape(-1)))


def _inked(under: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return colours, (n or 1, 3) uint8, with ink over them: mask (n,), 255 is all ink."""
    ink = np.array(_DARK if under.mean() > 127 else _LIGHT, np.float64)
    return np.round(under + (ink - under) * (mask / 255)[:, None]).astype(np.uint8)
