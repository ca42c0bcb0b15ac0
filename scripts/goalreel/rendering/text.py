"""Antialiased text in the font that ships with Pillow, so that no system font is needed.

`draw_text` returns pixels. `Canvas` turns text into opaque, even-aligned patches for a layer.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from goalreel.arrays import paste
from goalreel.rendering.captions import CHARACTERS
from goalreel.rendering.layers import Patches

_SMALLEST = 8  # pixels; smaller letters are illegible
_DARK, _LIGHT = (38, 38, 38), (242, 242, 242)

Color = tuple[int, int, int]


def draw_text(
    text: str, size: float, ink: Color | int, paper: Color | int, width: int | None = None
) -> np.ndarray:
    """Return one line of text as (h, w, 3) uint8, `ink` on `paper`, or (h, w) for shades of gray.

    A question mark replaces each character that the font lacks. The font size, in pixels, sets the
    height, so that lines of one size align. A text wider than `width` pixels gets a smaller font,
    then an ellipsis.
    """
    from PIL import Image, ImageDraw

    text = "".join(letter if letter in CHARACTERS else "?" for letter in text)
    fitting, length = size, _font(size).getlength(text)
    if width is not None:
        while fitting > _SMALLEST and length > width:
            fitting -= 0.5
            length = _font(fitting).getlength(text)
        shown = text
        while len(text) > 1 and length > width:
            shown = shown[:-1]
            text = shown.rstrip(" ·") + "…"
            length = _font(fitting).getlength(text)
    ascent, descent = _font(size).getmetrics()
    shape = max(math.ceil(length), 1), ascent + descent
    image = Image.new("L" if isinstance(ink, int) else "RGB", shape, paper)
    ImageDraw.Draw(image).text((0, ascent), text, fill=ink, font=_font(fitting), anchor="ls")
    return np.asarray(image)


@cache
def _font(size: float):
    from PIL import ImageFont

    return ImageFont.load_default(size)


@dataclass(frozen=True)
class Canvas:
    """A background, (H, W, 3) uint8, to write on: dark on light, or light on dark."""

    background: np.ndarray

    def text(
        self, text: str, top: int, size: float, left: int | None = None, room: int | None = None
    ) -> Patches:
        """Return a patch with a line of text. All lengths are in pixels of the background."""
        # left: None centers the text. room: the most width, None for up to the right border
        columns = self.background.shape[1]
        room = max(columns - (left or 0) if room is None else room, 2)
        mask = draw_text(text, max(size, _SMALLEST), 255, 0, room)
        return self.stamp(mask, top, (columns - mask.shape[1]) // 2 if left is None else left)

    def stamp(self, mask: np.ndarray, top: int, left: int) -> Patches:
        """Return a patch of ink over the background: a mask, (h, w) uint8, whose 255 is all ink."""
        # top, left: in pixels of the background. The patch is cut at its border.
        rows, columns = self.background.shape[:2]
        top, left = min(max(top, 0), rows - 1), min(max(left, 0), columns - 1)
        t, lft = top & ~1, left & ~1
        b = min((top + mask.shape[0] + 1) & ~1, rows)
        r = min((left + mask.shape[1] + 1) & ~1, columns)
        covered = np.zeros((b - t, r - lft), np.uint8)
        paste(covered, mask[: b - top, : r - left], top - t, left - lft)
        box = np.array([[t, lft, b - t, r - lft]], np.int32)
        under = self.background[t:b, lft:r].reshape(-1, 3)
        if (under == under[0]).all():  # one color: blend each of the 256 shades once
            return Patches(box, _blend_ink(under[:1], np.arange(256))[covered.reshape(-1)])
        return Patches(box, _blend_ink(under, covered.reshape(-1)))


def _blend_ink(under: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return colors, (n or 1, 3) uint8, with ink over them: mask (n,), 255 is all ink."""
    ink = np.array(_DARK if under.mean() > 127 else _LIGHT, np.float64)
    return np.round(under + (ink - under) * (mask / 255)[:, None]).astype(np.uint8)
