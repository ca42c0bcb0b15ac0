"""Games as a network sees them: environments given as pixels, and the wrappers between."""

from goalreel.games.lanes import Episode, PixelLanes, PixelStep, make_lanes
from goalreel.games.settings import GameSettings

__all__ = ["Episode", "GameSettings", "PixelLanes", "PixelStep", "make_lanes"]
