"""Making the environments of a game, of whatever family it is."""

from goalreel.training.games.lanes import PixelLanes
from goalreel.training.games.settings import ALE, CAR, GameSettings


def make_lanes(game: GameSettings, seed: int, lanes: int) -> PixelLanes:
    """Return `lanes` environments of a game; the same seed and actions give the same pixels.

    Raises GoalreelError where a package is missing.
    """
    if game.family == CAR:
        from goalreel.training.games.mountain_car import CarLanes

        return CarLanes(game, seed, lanes)
    if game.family == ALE:
        from goalreel.training.games.atari import AtariLanes

        return AtariLanes(game, seed, lanes)
    from goalreel.training.games.mario_lanes import MarioLanes

    return MarioLanes(game, seed, lanes)
