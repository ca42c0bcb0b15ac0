"""The palettes of the vector style: which colour each part of the scene has.

Text and lines stand out from what lies under them (WCAG 2.2, 1.4.3 and 1.4.11: contrast ratios of
4.5 and 3), and the car and the flag differ also for who sees no difference of red and green: their
blues and oranges are Okabe and Ito's (jfly.uni-koeln.de/color).
"""

from typing import NamedTuple

Colour = tuple[int, int, int]


class Palette(NamedTuple):
    """Colours of the scene's parts, each (red, green, blue), 0 to 255."""

    ink: Colour  # text
    paper: Colour  # under text; the ground too
    sky: Colour  # at its deepest
    line: Colour  # the hill's, and the flag's pole
    body: Colour
    window: Colour
    tyre: Colour
    hub: Colour
    cloth: Colour  # the flag's


PALETTES = {
    "light": Palette(
        ink=(31, 41, 51),
        paper=(252, 252, 250),
        sky=(196, 221, 236),
        line=(62, 78, 92),
        body=(0, 114, 178),
        window=(226, 240, 248),
        tyre=(31, 41, 51),
        hub=(226, 232, 236),
        cloth=(213, 94, 0),
    ),
    "dark": Palette(
        ink=(236, 240, 243),
        paper=(17, 21, 27),
        sky=(38, 58, 82),
        line=(157, 173, 189),
        body=(86, 180, 233),
        window=(20, 40, 60),
        tyre=(226, 232, 238),
        hub=(52, 66, 82),
        cloth=(230, 159, 0),
    ),
}
