"""The traits of environments that the workflow needs, such as the default shard size.

goalreel simulates the two Mountain Cars itself and renders them from an atlas. Gymnasium makes all
other environments. The Snakefile imports this module, which therefore avoids NumPy. Source of the
constants: mountain_car.py and continuous_mountain_car.py in gymnasium/envs/classic_control (1.4.0).
"""

from dataclasses import dataclass
from functools import cache

MIN_POSITION, MAX_POSITION = -1.2, 0.6
MAX_SPEED = 0.07
# Default numbers of reaches per shard. They depend only on the id, so that a longer run only adds
# shards. Gymnasium renders a few hundred frames per second, so a shard of 7 long episodes takes ten
# seconds, and 100 episodes keep 15 cores busy. Shards are larger for short episodes, for
# environments that goalreel steps and renders itself, and for ALE, where networks play in batches.
_PLAYED_SHARD, _COMPUTED_SHARD = 7, 250
_SHARDS = {"ALE/": 10, "MiniGrid-": 100, "BabyAI-": 100, "LunarLander": 15, "BipedalWalker": 15}
_SHARDS |= {"CartPole-": 50, "Acrobot-": 20, "Pendulum-": 25}
_SHARDS |= dict.fromkeys(("Blackjack-", "CliffWalking", "FrozenLake", "Taxi-"), 100)
_MUJOCO = ("Ant-", "HalfCheetah-", "Hopper-", "Humanoid", "Inverted", "Pusher-", "Reacher-")
# About the seconds of a frame, to limit shards to a minute, or 0 for no limit. In environments that
# are not listed, the time of the first steps depends on the machine, and so may the shards.
_FRAME_SECONDS = dict.fromkeys(_SHARDS, 0.0) | {"CarRacing": 0.01}
_FRAME_SECONDS |= dict.fromkeys((*_MUJOCO, "Swimmer-", "Walker2d-"), 0.03)
# Environments that `classic_control` steps and renders if they have no wrappers.
CLASSIC_CONTROL = ("CartPole-v0", "CartPole-v1", "Acrobot-v1", "Pendulum-v1")
# Environments that Gymnasium renders with few new blocks per frame. Encoding each block only once
# pays off there (benchmarks/film/encoding.py).
_FEW_BLOCKS = ("ALE/", "Acrobot-", "BabyAI-", "CartPole-", "CliffWalking", "FrozenLake")
_FEW_BLOCKS += ("LunarLander", "MiniGrid-", "Pendulum-", "Taxi-")


@dataclass(frozen=True)
class EnvTraits:
    """The traits of an environment that follow from its id."""

    id: str
    computed: bool = False  # whether goalreel steps it without Gymnasium
    has_atlas: bool = False  # whether all its frames are rendered in advance
    goal_position: float | None = None  # None for all but the Mountain Cars
    float32_states: bool = False  # whether states become float32 at the first step
    few_blocks: bool = False  # whether its films are assembled from blocks by default
    shard_size: int = _COMPUTED_SHARD  # default number of reaches per shard
    frame_seconds: float | None = None  # None if only a measurement tells

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
    """Return the traits of an environment; unknown ids get the defaults."""
    name = env.rpartition(":")[2]

    def of(table: dict, default: object) -> object:
        return next((value for key, value in table.items() if name.startswith(key)), default)

    size, seconds = of(_SHARDS, _PLAYED_SHARD), of(_FRAME_SECONDS, None)
    few_blocks = name.startswith(_FEW_BLOCKS)
    played = EnvTraits(env, few_blocks=few_blocks, shard_size=size, frame_seconds=seconds)
    return MOUNTAIN_CARS.get(env, played)
