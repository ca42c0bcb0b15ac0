"""Text as pixels: antialiased, in the font that ships with Pillow, so that no system font is asked.

Where text stands on a frame, and what it says, is told by the callers: overlay and the views.
"""

from functools import cache

import numpy as np

from goalreel.captions import CHARACTERS
from goalreel.errors import GoalreelError

_SMALLEST = 8  # pixels; below, nothing can be read

Colour = tuple[int, int, int]


def lettering(
    text: str, size: float, ink: Colour, paper: Colour, width: int | None = None
) -> np.ndarray:
    """Return one line of text as (h, w, 3) uint8, `ink` on `paper`.

    size: the font's, in pixels. The height depends on it alone, so that lines of one size stand on
    one baseline. width: at most so wide; longer text is set smaller and, at 8 pixels, cut with an
    ellipsis. Raises GoalreelError if the font lacks a character.
    """
    return _drawn(text, size, "RGB", ink, paper, width)


def letter_mask(text: str, size: float, width: int | None = None) -> np.ndarray:
    """Return one line of text as (h, w) uint8, the ink's share in 255; see lettering."""
    return _drawn(text, size, "L", 255, 0, width)


def _drawn(text: str, size: float, mode: str, ink, paper, width: int | None) -> np.ndarray:
    from PIL import Image, ImageDraw

    missing = sorted(set(text) - set(CHARACTERS))
    if missing:
        raise GoalreelError(
            f"the font has no {', '.join(map(repr, missing))} for {text!r}; "
            f"allowed: ASCII and · ° …"
        )
    ascent, descent = _font(size).getmetrics()
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
    across = max(int(np.ceil(length)), 1)
    image = Image.new(mode, (across, ascent + descent), paper)
    ImageDraw.Draw(image).text((0, ascent), text, fill=ink, font=_font(fitting), anchor="ls")
    return np.asarray(image)


@cache
def _font(size: float):
    from PIL import ImageFont

    return ImageFont.load_default(size)
