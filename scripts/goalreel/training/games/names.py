"""Which games there are, by their ids, in three families; none of their packages is imported.

Thus a game's name can be checked where it is not played: the car is goalreel's own, ALE's games
are known where ale-py is installed, those of gym-super-mario-bros everywhere.
"""

import importlib.util
from pathlib import Path

from goalreel.errors import GoalreelError, nearest

CAR, ALE, MARIO = "car", "ale", "mario"
CAR_GAME = "MountainCar-v0"
# Version n of an id draws less than the one before: all, fewer details, pixels, rectangles.
MARIO_ROMS = ("vanilla", "downsample", "pixel", "rectangle")
_STAGES = ("", *(f"-{world}-{stage}" for world in range(1, 9) for stage in range(1, 5)))
MARIO_GAMES = tuple(
    f"SuperMarioBros{stage}-v{version}" for version in range(len(MARIO_ROMS)) for stage in _STAGES
)


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
    raise GoalreelError(
        f"game: unknown value {game!r}{nearest(game, [CAR_GAME, *MARIO_GAMES, *ale])}; allowed: "
        f"{CAR_GAME}, an id of ale-py such as 'ALE/Breakout-v5', 'SuperMarioBros-1-1-v0' and kin"
    )


def ale_games() -> tuple[str, ...]:
    """Return the ids of the ROMs that ale-py brings, as it forms them; none without ale-py."""
    package = importlib.util.find_spec("ale_py")
    folders = package.submodule_search_locations if package else None
    roms = sorted(Path(folders[0], "roms").glob("*.bin")) if folders else ()
    return tuple(f"ALE/{rom.stem.title().replace('_', '')}-v5" for rom in roms)
