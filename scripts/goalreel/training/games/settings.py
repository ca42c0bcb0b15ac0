"""Which games there are, and the settings of one and its wrappers: plain values, as in JSON.

A game's name is checked also where it is not played, so none of the packages is imported: the car
is goalreel's own, ALE's games are known where ale-py is installed, those of gym-super-mario-bros
everywhere.
"""

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from goalreel.environments.gymnasium_ids import MARIO_GAMES
from goalreel.errors import GoalreelError, OptionError, quoted, suggest

CAR, ALE, MARIO = "car", "ale", "mario"
CAR_GAME = "MountainCar-v0"
_OF_FAMILY = {
    CAR: {"maximum": False, "warp": "pillow", "noop": 0, "fire": False},
    ALE: {"maximum": True, "warp": "area", "noop": 30, "fire": True},  # its screens flicker
    MARIO: {"maximum": False, "warp": "pillow", "noop": 30, "fire": True},
}  # as in Stable-Baselines3's AtariWrapper for ALE's games; an emulated game begins alike each time


@dataclass(frozen=True)
class GameSettings:
    """A game and how its network sees it."""

    game: str  # "MountainCar-v0", "ALE/Breakout-v5", "SuperMarioBros-1-1-v0", ...
    frame_skip: int  # frames that an action lasts
    maximum: bool  # an observation is the maximum of the last two of them
    warp: str  # how pictures become (84, 84) uint8, by its name in policies.preprocessing
    noop: int  # the most frames that a game begins with doing nothing, 0 for none
    fire: bool  # the fire button starts the game, if it has one


def game_settings(game: str, frame_skip: int = 4, **changes) -> GameSettings:
    """Return the settings of a game, those of its family but for changes.

    Raises GoalreelError, naming the nearest, for a game that does not exist.
    """
    values = {"game": game, "frame_skip": frame_skip} | _OF_FAMILY[family_of(game)]
    return GameSettings(**values | changes)


def family_of(game: str) -> str:
    """Return the family of a game's id. Raises GoalreelError, naming the nearest, for others.

    Where ale-py is not installed, any id of the form "ALE/...-v5" passes.
    """
    if game == CAR_GAME:
        return CAR
    if game in MARIO_GAMES:
        return MARIO
    ale = ale_games()
    formed = isinstance(game, str) and game.startswith("ALE/") and game.endswith("-v5")
    if formed and (not ale or game in ale):
        return ALE
    fix = f"Use {CAR_GAME}, or an id such as ALE/Breakout-v5 or SuperMarioBros-1-1-v0."
    fix = suggest(game, [CAR_GAME, *MARIO_GAMES, *ale]) or fix
    raise OptionError("game", f"Unknown value {quoted(game)}. {fix}")


def is_game(game: str) -> bool:
    """Return whether an environment can be learned from pixels."""
    try:
        return bool(family_of(game))
    except GoalreelError:
        return False


def ale_games() -> dict[str, str]:
    """Return the ROMs that ale-py brings by their ids, as it forms these; none without ale-py."""
    package = importlib.util.find_spec("ale_py")
    folders = package.submodule_search_locations if package else None
    roms = [rom.stem for rom in sorted(Path(folders[0], "roms").glob("*.bin"))] if folders else ()
    return {f"ALE/{rom.title().replace('_', '')}-v5": rom for rom in roms}
