"""The styles that pictures are drawn in: which picture a position gives, and how it is drawn."""

from collections.abc import Mapping

from goalreel.rendering.gymnasium_style import GymnasiumStyle
from goalreel.rendering.vector_style import PALETTES, VectorStyle

Style = GymnasiumStyle | VectorStyle


def make_style(env: str, render: Mapping) -> Style:
    """Return the style of a Mountain Car's pictures.

    render: that section of the configuration: style, width, height, palette.
    """
    if render["style"] == "gymnasium":
        return GymnasiumStyle(env)
    return VectorStyle(env, (render["width"], render["height"]), PALETTES[render["palette"]])
