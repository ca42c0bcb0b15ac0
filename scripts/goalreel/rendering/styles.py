"""The styles that pictures are drawn in: which picture a position gives, and how it is drawn."""

from collections.abc import Mapping

from goalreel.environments.registry import MOUNTAIN_CARS, describe
from goalreel.errors import GoalreelError
from goalreel.rendering.gymnasium_style import GymnasiumStyle
from goalreel.rendering.vector_style import PALETTES, VectorStyle

Style = GymnasiumStyle | VectorStyle


def make_style(env: str, render: Mapping) -> Style:
    """Return the style of an environment's pictures.

    render: that section of the configuration: style, width, height, palette. Raises GoalreelError
    if the environment has no such style.
    """
    if not describe(env).has_atlas:
        raise GoalreelError(
            f"{env} has no atlas: swarm and the vector style show "
            f"{' and '.join(MOUNTAIN_CARS)} alone"
        )
    if render["style"] == "gymnasium":
        return GymnasiumStyle(env)
    return VectorStyle(env, (render["width"], render["height"]), PALETTES[render["palette"]])
