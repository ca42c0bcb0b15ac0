"""Which game is played, and its wrappers: plain values, as in JSON."""

from dataclasses import dataclass, replace

from goalreel.training.games.names import ALE, CAR, MARIO, family_of

# What is left open is as in Stable-Baselines3's AtariWrapper for ALE's games, None for what a
# single game may have or not. An emulated game begins alike each time; only ALE's flicker.
_NOTHING = dict.fromkeys(("maximum", "episodic_life", "fire", "clip_reward"), False) | {"noop": 0}
_OF_THE_GAME = {"noop": 30, "episodic_life": None, "fire": None}
_OPEN = {
    CAR: _NOTHING,
    ALE: _OF_THE_GAME | {"maximum": True, "clip_reward": True},
    MARIO: _NOTHING | _OF_THE_GAME,
}


@dataclass(frozen=True)
class GameSettings:
    """A game and its wrappers; `filled` sets what is None by the game's family."""

    game: str  # "MountainCar-v0", "ALE/Breakout-v5", "SuperMarioBros-1-1-v0", ...
    frame_skip: int = 4  # frames that an action lasts
    maximum: bool | None = None  # an observation is the maximum of the last two of them
    warp: str = "pillow"  # how pictures become (84, 84) uint8, by its name in games.warp
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
