"""Text as antialiased pixels, in the font that ships with Pillow: no system font is needed."""

from functools import cache

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.pictures.captions import CHARACTERS

_SMALLEST = 8  # pixels; below, nothing can be read

Colour = tuple[int, int, int]


def draw_text(
    text: str, size: float, ink: Colour, paper: Colour, width: int | None = None
) -> np.ndarray:
    """Return one line of text as (h, w, 3) uint8, `ink` on `paper`.

    size: the font's, in pixels. The height depends on it alone, so that lines of one size stand on
    one baseline. width: at most so wide; longer text is set smaller and, at 8 pixels, cut with an
    ellipsis. Raises GoalreelError if the font lacks a character.
    """
    text, fitting, across = _fitted(text, size, width)
    ascent, descent = _font(size).getmetrics()
    return _drawn(text, fitting, (ascent + descent, across), (0, ascent), "RGB", ink, paper)


def text_mask(text: str, size: float, width: int | None = None) -> np.ndarray:
    """Return one line of text as (h, w) uint8, the ink's share in 255; see draw_text.

    A thousand captions take 0.25 s of letters that are drawn once, and 0.7 s by Pillow.
    """
    text, fitting, across = _fitted(text, size, width)
    ascent, descent = _font(size).getmetrics()
    shape = ascent + descent, across
    joined = _joined(text, fitting, shape, ascent)
    return _drawn(text, fitting, shape, (0, ascent), "L", 255, 0) if joined is None else joined


def _fitted(text: str, size: float, width: int | None) -> tuple[str, float, int]:
    """Return what is drawn of a text, the font's size for it, and how wide it is.

    Raises GoalreelError if the font lacks a character.
    """
    missing = sorted(set(text) - set(CHARACTERS))
    if missing:
        raise GoalreelError(
            f"the font has no {', '.join(map(repr, missing))} for {text!r}; "
            f"allowed: ASCII and · ° …"
        )
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
    return text, fitting, max(int(np.ceil(length)), 1)


def _drawn(
    text: str, size: float, shape: tuple[int, int], base: tuple[int, int], mode: str, ink, paper
) -> np.ndarray:
    """Return a text in a picture of `shape`, (height, width); base: where its baseline begins."""
    from PIL import Image, ImageDraw

    image = Image.new(mode, shape[::-1], paper)
    ImageDraw.Draw(image).text(base, text, fill=ink, font=_font(size), anchor="ls")
    return np.asarray(image)


def _joined(text: str, size: float, shape: tuple[int, int], ascent: int) -> np.ndarray | None:
    """Return what _drawn would, put together from letters that are drawn once.

    None where letters overlap, which Pillow blends, or stand too near the right border.
    """
    left, ink, room = 0.0, 0, _room(size)
    joined = np.zeros((shape[0], shape[1] + 2 * room), np.uint8)
    for letter, following in zip(text, text[1:] + " ", strict=True):
        pixels, total = _letter(letter, size, shape[0], ascent)
        place = joined[:, int(left) : int(left) + pixels.shape[1]]
        if place.shape != pixels.shape:
            return None
        np.maximum(place, pixels, out=place)
        ink += total
        left += _advance(letter, following, size)
    return joined[:, room:-room] if int(joined.sum()) == ink else None


@cache
def _letter(letter: str, size: float, height: int, ascent: int) -> tuple[np.ndarray, int]:
    """Return a letter with room on both sides, and the sum of its pixels."""
    room = _room(size)
    across = int(np.ceil(_font(size).getlength(letter))) + 2 * room
    pixels = _drawn(letter, size, (height, across), (room, ascent), "L", 255, 0)
    return pixels, int(pixels.sum())


def _room(size: float) -> int:
    """Return pixels that are enough for what reaches over a letter's place on either side."""
    return int(size) // 2


@cache
def _advance(letter: str, following: str, size: float) -> float:
    """Return how far the next letter stands from a letter, in pixels, kerning included."""
    return _font(size).getlength(letter + following) - _font(size).getlength(following)


@cache
def _font(size: float):
    from PIL import ImageFont

    return ImageFont.load_default(size)
