"""Which games there are, and the settings of one and its wrappers: plain values, as in JSON.

A game's name is checked also where it is not played, so none of the packages is imported: the car
is goalreel's own, ALE's games are known where ale-py is installed, those of gym-super-mario-bros
everywhere.
"""

import importlib.util
from dataclasses import dataclass, replace
from pathlib import Path

from goalreel.environments.gymnasium_ids import MARIO_GAMES
from goalreel.errors import GoalreelError, OptionError, did_you_mean

CAR, ALE, MARIO = "car", "ale", "mario"
CAR_GAME = "MountainCar-v0"
# What is left open is as in Stable-Baselines3's AtariWrapper for ALE's games, None for what a
# single game may have or not. An emulated game begins alike each time; only ALE's flicker.
_NOTHING = dict.fromkeys(("maximum", "episodic_life", "fire", "clip_reward"), False)
_NOTHING |= {"noop": 0, "warp": "pillow"}
_OF_THE_GAME = {"noop": 30, "episodic_life": None, "fire": None}
_OPEN = {
    CAR: _NOTHING | {"clip_reward": True},  # an action costs 1, however many frames it lasts
    ALE: _OF_THE_GAME | {"maximum": True, "clip_reward": True, "warp": "area"},
    MARIO: _NOTHING | _OF_THE_GAME,
}


@dataclass(frozen=True)
class GameSettings:
    """A game and its wrappers; `filled` sets what is None by the game's family."""

    game: str  # "MountainCar-v0", "ALE/Breakout-v5", "SuperMarioBros-1-1-v0", ...
    frame_skip: int = 4  # frames that an action lasts
    maximum: bool | None = None  # an observation is the maximum of the last two of them
    warp: str | None = (
        None  # how pictures become (84, 84) uint8, by its name in policies.preprocessing
    )
    noop: int | None = None  # the most frames that a game begins with doing nothing, 0 for none
    episodic_life: bool | None = None  # the learner's episode ends with each life
    fire: bool | None = None  # the fire button starts the game
    clip_reward: bool | None = None  # the learner gets the sign of a reward

    def __post_init__(self):
        """Raise GoalreelError, naming the nearest, for a game that does not exist."""
        family_of(self.game)

    @property
    def family(self) -> str:
        """CAR, ALE or MARIO."""
        return family_of(self.game)

    def filled(self) -> "GameSettings":
        """Return them with what was left open; None is left where the game itself decides."""
        values = _OPEN[self.family]
        return replace(self, **{k: v for k, v in values.items() if getattr(self, k) is None})


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
    hint = did_you_mean(game, [CAR_GAME, *MARIO_GAMES, *ale])
    raise OptionError(
        "game",
        f"unknown value {game!r}{hint}; allowed: {CAR_GAME}, an id of ale-py "
        f"such as 'ALE/Breakout-v5', 'SuperMarioBros-1-1-v0' and kin",
    )


def is_game(game: str) -> bool:
    """Return whether an environment can be learned from pixels."""
    try:
        return bool(family_of(game))
    except GoalreelError:
        return False


def rom_of(game: str) -> str:
    """Return the name of a game's ROM, by its id."""
    return ale_games()[game]


def ale_games() -> dict[str, str]:
    """Return the ROMs that ale-py brings by their ids, as it forms these; none without ale-py."""
    package = importlib.util.find_spec("ale_py")
    folders = package.submodule_search_locations if package else None
    roms = [rom.stem for rom in sorted(Path(folders[0], "roms").glob("*.bin"))] if folders else ()
    return {f"ALE/{rom.title().replace('_', '')}-v5": rom for rom in roms}
