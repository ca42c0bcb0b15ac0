"""The traits of environments that the workflow needs, from families.toml.

goalreel simulates the two Mountain Cars itself and renders them from an atlas. Gymnasium makes all
other environments. The Snakefile imports this module, which therefore avoids NumPy. Source of the
constants: mountain_car.py and continuous_mountain_car.py in gymnasium/envs/classic_control (1.4.0).
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

MIN_POSITION, MAX_POSITION = -1.2, 0.6
MAX_SPEED = 0.07
_TABLES = tomllib.loads(Path(__file__).with_name("families.toml").read_text(encoding="utf-8"))
FAMILIES, PACKAGES, LATE = (_TABLES[name] for name in ("families", "packages", "late"))
# Environments that `classic_control` steps and renders if they have no wrappers.
CLASSIC_CONTROL = ("CartPole-v0", "CartPole-v1", "Acrobot-v1", "Pendulum-v1")


@dataclass(frozen=True)
class EnvTraits:
    """The traits of an environment that follow from its id."""

    id: str
    computed: bool = False  # whether goalreel steps it without Gymnasium
    has_atlas: bool = False  # whether all its frames are rendered in advance
    goal_position: float | None = None  # None for all but the Mountain Cars
    float32_states: bool = False  # whether states become float32 at the first step
    few_blocks: bool = False  # whether its films are assembled from blocks by default
    shard_size: int = 250  # default number of reaches per shard
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
    known = next((family for start, family in FAMILIES.items() if name.startswith(start)), {})
    traits = {key: value for key, value in known.items() if key != "module"}
    return MOUNTAIN_CARS.get(env) or EnvTraits(env, **{"shard_size": 7, **traits})
