"""Text as antialiased pixels, in the font that ships with Pillow: no system font is needed.

On a canvas it is an opaque, even-aligned patch that fits under any layer. Lengths are given there
for a picture of 600x400 and scaled as Mountain Car's scene is, which is in the middle of a picture
of another shape.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.pictures.captions import CHARACTERS
from goalreel.pictures.layers import Patches

_SMALLEST = 8  # pixels; below, nothing can be read
_COLUMNS, _ROWS = 600, 400
_DARK, _LIGHT = (38, 38, 38), (242, 242, 242)

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
