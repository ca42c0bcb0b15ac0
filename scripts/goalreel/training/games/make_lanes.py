"""Making the environments of a game, of whatever family it is."""

from goalreel.errors import GoalreelError
from goalreel.training.games.lanes import PixelLanes
from goalreel.training.games.names import CAR
from goalreel.training.games.settings import GameSettings


def make_lanes(game: GameSettings, seed: int, lanes: int) -> PixelLanes:
    """Return `lanes` environments of a game; the same seed and actions give the same pixels.

    Raises GoalreelError where a package is missing, for a wrapper that the game has no use for,
    and for less than one lane.
    """
    if lanes < 1:
        raise GoalreelError(f"lanes: {lanes} is not allowed; allowed: 1 or more environments")
    if game.family == CAR:
        from goalreel.training.games.mountain_car import CarLanes

        return CarLanes(game, seed, lanes)
    from goalreel.training.games.emulated import EmulatedLanes

    return EmulatedLanes(game, seed, lanes)
