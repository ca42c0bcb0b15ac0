"""The games, and the settings of a game and its preprocessing as plain values.

Snakemake checks a game's name before the run, so this module imports no game. goalreel knows the
names of ALE games if ale-py is installed, and always those of the other games.
"""

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from goalreel.environments.gymnasium_ids import MARIO_GAMES
from goalreel.errors import GoalreelError, OptionError, quoted, suggest

CAR, ALE, MARIO = "car", "ale", "mario"
CAR_GAME = "MountainCar-v0"
_FAMILY_SETTINGS = {
    CAR: {"maximum": False, "warp": "pillow", "noop": 0, "fire": False},
    ALE: {"maximum": True, "warp": "area", "noop": 30, "fire": True},  # sprites flicker
    MARIO: {"maximum": False, "warp": "pillow", "noop": 30, "fire": True},
}  # for ALE games as in Stable-Baselines3's AtariWrapper; no-ops vary the start


@dataclass(frozen=True)
class GameSettings:
    """A game and the preprocessing of its frames."""

    game: str  # "MountainCar-v0", "ALE/Breakout-v5", "SuperMarioBros-1-1-v0", ...
    frame_skip: int  # frames that an action lasts
    maximum: bool  # whether an observation is the maximum of the last two frames
    warp: str  # the resizing to (84, 84), a name in policies.preprocessing
    noop: int  # maximum number of no-op frames at the start
    fire: bool  # whether to start with FIRE, if the game has it


def game_settings(game: str, frame_skip: int = 4, **changes) -> GameSettings:
    """Return the settings of a game: those of its family, with changes.

    Raises GoalreelError if the game is unknown.
    """
    values = {"game": game, "frame_skip": frame_skip} | _FAMILY_SETTINGS[family_of(game)]
    return GameSettings(**values | changes)


def family_of(game: str) -> str:
    """Return the family of a game by its id. Raises GoalreelError for unknown games.

    Without ale-py, any id of the form "ALE/...-v5" is accepted.
    """
    if game == CAR_GAME:
        return CAR
    if game in MARIO_GAMES:
        return MARIO
    ale = ale_games()
    is_ale = isinstance(game, str) and game.startswith("ALE/") and game.endswith("-v5")
    if is_ale and (not ale or game in ale):
        return ALE
    fix = f"Use {CAR_GAME}, or an id such as ALE/Breakout-v5 or SuperMarioBros-1-1-v0."
    fix = suggest(game, [CAR_GAME, *MARIO_GAMES, *ale]) or fix
    raise OptionError("game", f"Unknown value {quoted(game)}. {fix}")


def is_game(game: str) -> bool:
    """Return whether goalreel can train in an environment from pixels."""
    try:
        return bool(family_of(game))
    except GoalreelError:
        return False


def ale_games() -> dict[str, str]:
    """Return the ROM of each id of ale-py, or none without ale-py."""
    package = importlib.util.find_spec("ale_py")
    folders = package.submodule_search_locations if package else None
    roms = [rom.stem for rom in sorted(Path(folders[0], "roms").glob("*.bin"))] if folders else ()
    return {f"ALE/{rom.title().replace('_', '')}-v5": rom for rom in roms}
