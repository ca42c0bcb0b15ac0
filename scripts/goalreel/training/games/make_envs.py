"""Make the vectorized environments of any game."""

from goalreel.training.games.pixel_envs import PixelEnvs
from goalreel.training.games.settings import ALE, CAR, GameSettings, family_of


def make_envs(game: GameSettings, seed: int, num_envs: int) -> PixelEnvs:
    """Return `num_envs` environments of a game; the same seed and actions give the same pixels.

    Raises GoalreelError if a package is missing.
    """
    family = family_of(game.game)
    if family == CAR:
        from goalreel.training.games.mountain_car import CarPixelEnvs as Envs
    elif family == ALE:
        from goalreel.training.games.atari import AtariEnvs as Envs
    else:
        from goalreel.training.games.mario_envs import MarioEnvs as Envs
    return Envs(game, seed, num_envs)
