"""Which environments goalreel computes itself, and what the workflow needs to know of each.

Two Mountain Cars are computed here, and drawn from an atlas; every other id is made by Gymnasium.
Imported while the Snakefile is parsed, so without NumPy. Source of the figures:
gymnasium/envs/classic_control/mountain_car.py and continuous_mountain_car.py (1.4.0).
"""

from dataclasses import dataclass
from functools import cache

MIN_POSITION, MAX_POSITION = -1.2, 0.6
MAX_SPEED = 0.07
# Reaches in a shard where the user sets none, by the id alone, so that a longer run makes only new
# shards. Gymnasium steps and draws some hundred frames a second: 7 long episodes take ten seconds,
# and 100 are 15 shards, about one for each of 16 cores. Where episodes are short, or stepped and
# drawn here, or an instance takes long to make (ALE's as long as 200 steps), a shard has more.
_PLAYED_SHARD, _COMPUTED_SHARD = 7, 250
_SHARDS = {"ALE/": 25, "MiniGrid-": 100, "BabyAI-": 100, "LunarLander": 15}
_SHARDS |= {"CartPole-": 50, "Acrobot-": 20, "Pendulum-": 25}
_SHARDS |= dict.fromkeys(("Blackjack-", "CliffWalking", "FrozenLake", "Taxi-"), 100)
# What `classic_control` steps and draws, where it has no wrappers.
CLASSIC_CONTROL = ("CartPole-v0", "CartPole-v1", "Acrobot-v1", "Pendulum-v1")
# Of what Gymnasium draws, where few blocks of a picture are new, so that coding each once pays
# (benchmarks/film/encoding.py).
_FEW_BLOCKS = ("ALE/", "Acrobot-", "BabyAI-", "CartPole-", "CliffWalking", "FrozenLake")
_FEW_BLOCKS += ("LunarLander", "MiniGrid-", "Pendulum-", "Taxi-")


@dataclass(frozen=True)
class EnvTraits:
    """What is known of an environment by its id alone."""

    id: str
    computed: bool = False  # whether goalreel steps it, and Gymnasium is not needed
    has_atlas: bool = False  # whether it has so few pictures that all are drawn beforehand
    goal_position: float | None = None  # of a Mountain Car, else None
    float32_states: bool = False  # whether its states turn float32 at the first step
    few_blocks: bool = False  # whether films of it are assembled from blocks where nothing is asked
    shard_size: int = _COMPUTED_SHARD  # the default number of reaches in a shard

    @property
    def is_mountain_car(self) -> bool:
        """Whether a state is a position and a velocity, with a goal on the track."""
        return self.goal_position is not None


MOUNTAIN_CARS = {
    "MountainCar-v0": EnvTraits("MountainCar-v0", True, True, 0.5),
    "MountainCarContinuous-v0": EnvTraits("MountainCarContinuous-v0", True, True, 0.45, True),
}


@cache
def describe(env: str) -> EnvTraits:
    """Return what is known of an environment; an unknown id is left to Gymnasium."""
    name = env.rpartition(":")[2]
    sizes = (size for prefix, size in _SHARDS.items() if name.startswith(prefix))
    few_blocks = name.startswith(_FEW_BLOCKS)
    played = EnvTraits(env, few_blocks=few_blocks, shard_size=next(sizes, _PLAYED_SHARD))
    return MOUNTAIN_CARS.get(env, played)
