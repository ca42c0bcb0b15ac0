"""Writing on a background: text as an opaque, even-aligned patch that fits under any layer.

Lengths are given for a picture of 400 rows and scaled to the real one. Letters come from lettering;
what is written, and when, is told by overlay, hud and the views.
"""

from dataclasses import dataclass

import numpy as np

from goalreel.layers import Patches
from goalreel.lettering import lettering

_ROWS = 400
_DARK, _LIGHT = (38, 38, 38), (242, 242, 242)
_BLACK, _WHITE = (0, 0, 0), (255, 255, 255)


@dataclass(frozen=True)
class Board:
    """A background to write on.

    background: (H, W, 3) uint8. plate: write on a black plate, for pictures whose background
    is not known to be empty there; else straight on the background, dark on light or light on dark.
    """

    background: np.ndarray
    plate: bool = False

    def scaled(self, length: float) -> int:
        """Return a length of the 400-row picture in pixels of this one."""
        return round(length * self.background.shape[0] / _ROWS)

    def text(self, text: str, top: float, size: float, left: float | None = None) -> Patches:
        """Return one patch with a line of text: its top row, the font's size, its left column.

        `left` None centres it, clear of Mountain Car's flag. It never leaves the picture: long text
        is set smaller, then cut.
        """
        height, width = self.background.shape[:2]
        margin = self.scaled(40 if left is None and not self.plate else 12)
        start = margin if left is None else self.scaled(left)
        room = max(width - start - margin, 2)
        size = max(size * height / _ROWS, 8)
        mask = lettering(text, size, _WHITE, _BLACK, room)[:, :, 0]
        if left is None:
            start = (width - mask.shape[1]) // 2
        return self.stamp(mask, self.scaled(top), start)

    def stamp(self, mask: np.ndarray, top: int, left: int) -> Patches:
        """Return one patch that lays ink over the background: mask (h, w) uint8, 255 is all ink.

        top, left: in this picture's pixels; what reaches beyond it is cut.
        """
        rows, columns = self.background.shape[:2]
        top, left = min(max(top, 0), rows - 1), min(max(left, 0), columns - 1)
        t, lft = top & ~1, left & ~1
        b = min((top + mask.shape[0] + 1) & ~1, rows)
        r = min((left + mask.shape[1] + 1) & ~1, columns)
        covered = np.zeros((b - t, r - lft), np.float64)
        y, x = top - t, left - lft
        inside = mask[: b - top, : r - left]
        covered[y : y + inside.shape[0], x : x + inside.shape[1]] = inside / 255
        under = np.zeros((b - t, r - lft, 3)) if self.plate else self.background[t:b, lft:r]
        ink = np.array(_DARK if under.mean() > 127 else _LIGHT, np.float64)
        pixels = under + (ink - under) * covered[:, :, None]
        box = np.array([[t, lft, b - t, r - lft]], np.int32)
        return Patches(box, np.round(pixels).astype(np.uint8).reshape(-1, 3))
