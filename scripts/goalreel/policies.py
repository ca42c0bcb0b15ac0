"""Who drives: policies over lanes, which see the float32 observation and nothing else.

A policy is a function (observations (lanes, 2) float32, environment) -> actions (lanes,) of the
environment's action dtype. Random actions are mixed in here too, from each episode's own generator.
Which policy fits which environment is told by config.schema.yaml.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.physics import CONTINUOUS, Environment
from goalreel.seeding import Pcg64

LEFT, RIGHT = 0, 2


def _push(right: np.ndarray, environment: Environment, force: float) -> np.ndarray:
    """Return actions that push right where `right`, else left, with `force` where it is chosen."""
    if environment is CONTINUOUS:
        return np.where(right, force, -force).astype(np.float32)
    return np.where(right, RIGHT, LEFT).astype(np.int8)


def pump(observations: np.ndarray, environment: Environment, force: float = 1.0) -> np.ndarray:
    """Push along the velocity, and right when it is zero."""
    return _push(observations[:, 1] >= 0, environment, force)


def near_optimal(observations: np.ndarray, environment: Environment) -> np.ndarray:
    """Push right between two curves of the phase plane, else left; about 105 steps to the goal.

    The three-curve rule is Z. Xiao's closed-form policy for MountainCar-v0 ("Reinforcement
    Learning: Theory and Python Implementation"); products are grouped so that every machine
    rounds them alike.
    """
    position, velocity = observations.astype(np.float64).T
    upper = -0.07 * np.square(position + 0.38) + 0.07
    parabola = -0.09 * np.square(position + 0.25) + 0.03
    quartic = 0.3 * np.square(np.square(position + 0.9)) - 0.008
    right = (np.minimum(parabola, quartic) <= velocity) & (velocity <= upper)
    return _push(right, environment, 1.0)


@dataclass(frozen=True)
class Policy:
    """A rule, and the share of actions that are drawn at random in its place."""

    rule: Callable[[np.ndarray, Environment], np.ndarray]
    epsilon: float

    def act(
        self, observations: np.ndarray, environment: Environment, generators: Pcg64
    ) -> tuple[np.ndarray, Pcg64]:
        """Return the actions (lanes,) and the generators after their draws.

        With epsilon > 0 each step draws two doubles of the episode's generator: the first is
        compared with epsilon, the second chooses uniformly among 0, 1, 2 or within -1 to 1.
        """
        if self.epsilon == 0:
            return self.rule(observations, environment), generators
        generators, coin = generators.random()
        generators, choice = generators.random()
        drawn = 2 * choice - 1 if environment is CONTINUOUS else np.floor(3 * choice)
        if self.epsilon == 1:
            return drawn.astype(environment.action_dtype), generators
        chosen = np.where(coin < self.epsilon, drawn, self.rule(observations, environment))
        return chosen.astype(environment.action_dtype), generators


def make_policy(config: Mapping) -> Policy:
    """Return the policy of a checked `policy` section: name, epsilon, and what else it takes.

    Raises GoalreelError for a name that is not known here.
    """
    name, epsilon = config["name"], float(config["epsilon"])
    if name == "random":
        return Policy(pump, 1.0)  # every action is drawn: the rule is never asked
    if name == "near_optimal":
        return Policy(near_optimal, epsilon)
    if name == "pump":
        force = float(config.get("force", 1.0))
        return Policy(lambda observations, env: pump(observations, env, force), epsilon)
    raise GoalreelError(f"unknown policy {name!r}")
