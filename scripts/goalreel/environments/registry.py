"""Which environments goalreel computes itself, and what the workflow needs to know of each.

Two Mountain Cars are computed and drawn here; every other id is Gymnasium's. No other module knows
which is which: they ask a description. Imported while the Snakefile is parsed, so without NumPy;
`environment.make_environment` makes the environment itself.

Source of the figures: gymnasium/envs/classic_control/mountain_car.py and
continuous_mountain_car.py (1.4.0).
"""

from dataclasses import dataclass

MIN_POSITION, MAX_POSITION = -1.2, 0.6
MAX_SPEED = 0.07


@dataclass(frozen=True)
class Description:
    """What is known of an environment by its id alone."""

    id: str
    computed: bool = False  # whether goalreel steps it, and Gymnasium is not needed
    has_atlas: bool = False  # whether it has so few pictures that all are drawn beforehand
    goal_position: float | None = None  # of a Mountain Car, else None
    float32_states: bool = False  # whether its states turn float32 at the first step

    @property
    def is_mountain_car(self) -> bool:
        """Whether a state is a position and a velocity, with a goal on the track."""
        return self.goal_position is not None


MOUNTAIN_CARS = {
    description.id: description
    for description in (
        Description("MountainCar-v0", True, True, 0.5),
        Description("MountainCarContinuous-v0", True, True, 0.45, float32_states=True),
    )
}


def describe(env: str) -> Description:
    """Return what is known of an environment; an unknown id is left to Gymnasium."""
    return MOUNTAIN_CARS.get(env) or Description(env)
