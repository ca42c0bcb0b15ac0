"""Which game is played, and its wrappers: plain values, as in JSON.

What a value left open (None) becomes is set here for each family of games; whether a single game
has lives or a fire button shows only once it is made.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from goalreel.errors import GoalreelError
from goalreel.training.games.names import ALE, CAR, MARIO, family_of, nearest
from goalreel.training.games.warp import WARPS

MOST_NOOPS = 30
MOST_SKIPPED = 60  # a second of a game

# What is left open is as in Stable-Baselines3's AtariWrapper for ALE's games, None for what a game
# may have or not. An emulated game begins alike each time; only ALE's flicker.
_NOTHING = {
    "noop": 0,
    "maximum": False,
    "episodic_life": False,
    "fire": False,
    "clip_reward": False,
}
_OF_THE_GAME = {"episodic_life": None, "fire": None}
_OPEN = {
    CAR: _NOTHING,
    ALE: _OF_THE_GAME | {"noop": MOST_NOOPS, "maximum": True, "clip_reward": True},
    MARIO: _NOTHING | _OF_THE_GAME | {"noop": MOST_NOOPS},
}
_NOT_IN_CAR = {
    "noop": "it has no action that presses nothing; each reset is random anyway",
    "maximum": "its pictures do not flicker",
    "episodic_life": "it has no lives",
    "fire": "it has no fire button",
}


@dataclass(frozen=True)
class GameSettings:
    """A game and its wrappers."""

    game: str  # "MountainCar-v0", "ALE/Breakout-v5", "SuperMarioBros-1-1-v0", ...
    frame_skip: int = 4  # frames that an action lasts
    maximum: bool | None = (
        None  # an observation is the maximum of the last two of them, or the last
    )
    warp: str = "pillow"  # how pictures become (84, 84) uint8, by its name in games.warp
    noop: int | None = None  # the most frames that a game begins with doing nothing, 0 for none
    episodic_life: bool | None = None  # the learner's episode ends with each life
    fire: bool | None = None  # the fire button starts the game
    clip_reward: bool | None = None  # the learner gets the sign of a reward

    def __post_init__(self):
        """Raise GoalreelError for a value that is not allowed."""
        family = family_of(self.game)
        _check_number("frame_skip", self.frame_skip, 1, MOST_SKIPPED)
        if self.noop is not None:
            _check_number("noop", self.noop, 0, MOST_NOOPS)
        if not isinstance(self.warp, str) or self.warp not in WARPS:
            allowed = ", ".join(WARPS)
            raise GoalreelError(
                f"warp: unknown value {self.warp!r}{nearest(self.warp, WARPS)}; allowed: {allowed}"
            )
        for key in ("maximum", "episodic_life", "fire", "clip_reward"):
            value = getattr(self, key)
            if not (value is None or isinstance(value, bool)):
                raise GoalreelError(f"{key}: {value!r} is not allowed; allowed: true or false")
        if family == CAR:
            for key, why in _NOT_IN_CAR.items():
                if getattr(self, key):
                    raise GoalreelError(f"{key}: {getattr(self, key)!r} for {self.game}: {why}")

    @classmethod
    def of(cls, values: Mapping) -> "GameSettings":
        """Return the settings of a mapping, as `dataclasses.asdict` gives it back.

        Raises GoalreelError for keys and values that are not allowed.
        """
        known = [field.name for field in fields(cls)]
        for key in values:
            if key not in known:
                allowed = ", ".join(known)
                raise GoalreelError(
                    f"{key}: unknown key{nearest(str(key), known)}; allowed: {allowed}"
                )
        if "game" not in values:
            raise GoalreelError("game: it is missing; allowed: the id of a game")
        return cls(**values)

    @property
    def family(self) -> str:
        """CAR, ALE or MARIO."""
        return family_of(self.game)

    def filled(self) -> "GameSettings":
        """Return them with what was left open; None is left where the game itself decides."""
        left = _OPEN[self.family]
        return replace(self, **{k: v for k, v in left.items() if getattr(self, k) is None})


def _check_number(key: str, value: object, least: int, most: int) -> None:
    number = isinstance(value, int) and not isinstance(value, bool)
    if not number or not least <= value <= most:
        raise GoalreelError(
            f"{key}: {value!r} is not allowed; allowed: a whole number from {least} to {most}"
        )
