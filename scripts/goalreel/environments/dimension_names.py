"""The names of the numbers in states and actions of environments.

Source: Gymnasium's documentation (1.4.0), gymnasium.farama.org/environments, in shorter words.
"""

from collections.abc import Mapping, Sequence

_CART, _ANGULAR = ("cart position", "cart velocity"), "angular velocity"
_LINKS = ("velocity of angle 1", "velocity of angle 2")
# By the start of the id. Environments may have several widths, since goalreel records the inner
# state of some and the observation of others.
_STATES: Mapping[str, Sequence[tuple[str, ...]]] = {
    "Acrobot-": (
        ("angle 1", "angle 2", *_LINKS),
        ("cosine of angle 1", "sine of angle 1", "cosine of angle 2", "sine of angle 2", *_LINKS),
    ),
    "CartPole-": ((*_CART, "pole angle", f"pole {_ANGULAR}"),),
    "InvertedPendulum-": ((_CART[0], "pole angle", _CART[1], f"pole {_ANGULAR}"),),
    "LunarLander": (
        ("x position", "y position", "x velocity", "y velocity", "angle", _ANGULAR)
        + ("left leg on the ground", "right leg on the ground"),
    ),
    "MountainCar": (("position", "velocity"),),
    "Pendulum-": (("angle", _ANGULAR), ("x (cosine)", "y (sine)", _ANGULAR)),
}
_GRID = ("left", "right", "forward", "pick up", "drop", "toggle", "done")
# The names of discrete actions, or of the numbers of a continuous action.
_ACTIONS = {
    "Acrobot-": ("torque −1", "torque 0", "torque 1"),
    "Blackjack-": ("stick", "hit"),
    "CartPole-": ("push left", "push right"),
    "CliffWalking": ("up", "right", "down", "left"),
    "FrozenLake": ("left", "down", "right", "up"),
    "LunarLander-": ("nothing", "left engine", "main engine", "right engine"),
    "LunarLanderContinuous-": ("main engine", "lateral boosters"),
    "MiniGrid-": _GRID,
    "BabyAI-": _GRID,
    "MountainCar-": ("left", "none", "right"),
    "MountainCarContinuous-": ("force",),
    "Pendulum-": ("torque",),
    "Taxi-": ("south", "north", "east", "west", "pick up", "drop off"),
}


def state_names(env: str, width: int) -> Sequence[str]:
    """Return the names of a state's numbers, "dimension 0" and so on if they are unknown."""
    named = next((n for start, n in _STATES.items() if _short(env).startswith(start)), ())
    unknown = tuple(f"dimension {number}" for number in range(width))
    return next((names for names in named if len(names) == width), unknown)


def action_names(env: str) -> Sequence[str]:
    """Return the names of the actions, or of the numbers of an action, none if unknown."""
    return next((n for start, n in _ACTIONS.items() if _short(env).startswith(start)), ())


def _short(env: str) -> str:
    return env.rpartition(":")[2]
