"""The names of numbers in states and of actions, after gymnasium.farama.org (1.4.0)."""

from collections.abc import Sequence

_LINKS = "velocity of angle 1", "velocity of angle 2"
_LANDER = "x position", "y position", "x velocity", "y velocity", "angle", "angular velocity"
# By the start of the id: the inner states and the observations that goalreel records.
_STATES = [
    ("Acrobot-", ("angle 1", "angle 2", *_LINKS)),
    ("Acrobot-", (*(f"{f} of angle {i}" for i in (1, 2) for f in ("cosine", "sine")), *_LINKS)),
    ("CartPole-", ("cart position", "cart velocity", "pole angle", "pole angular velocity")),
    ("LunarLander", (*_LANDER, "left leg on the ground", "right leg on the ground")),
    ("MountainCar", ("position", "velocity")),
    ("Pendulum-", ("angle", "angular velocity")),
    ("Pendulum-", ("x (cosine)", "y (sine)", "angular velocity")),
]
# The names of discrete actions, or of the number that is an action.
_ACTIONS = {
    "Acrobot-": ("torque −1", "torque 0", "torque 1"),
    "Blackjack-": ("stick", "hit"),
    "CartPole-": ("push left", "push right"),
    "CliffWalking": ("up", "right", "down", "left"),
    "FrozenLake": ("left", "down", "right", "up"),
    "LunarLander-": ("nothing", "left engine", "main engine", "right engine"),
    "MiniGrid-": ("left", "right", "forward", "pick up", "drop", "toggle", "done"),
    "MountainCar-": ("left", "none", "right"),
    "MountainCarContinuous-": ("force",),
    "Pendulum-": ("torque",),
    "Taxi-": ("south", "north", "east", "west", "pick up", "drop off"),
}


def state_names(env: str, width: int) -> Sequence[str]:
    """Return the names of a state's numbers, "dimension 0" and so on if they are unknown."""
    unknown = [f"dimension {number}" for number in range(width)]
    name = env.rpartition(":")[2]
    known = (n for start, n in _STATES if name.startswith(start) and len(n) == width)
    return next(known, unknown)


def action_names(env: str) -> Sequence[str]:
    """Return the names of the actions, or of the number that is an action, none if unknown."""
    name = env.rpartition(":")[2]
    return next((names for start, names in _ACTIONS.items() if name.startswith(start)), ())
