"""Who drives: policies over lanes, which see the observation and nothing else.

A rule is a function (observations (lanes, 2) float32, environment) -> actions (lanes,) of the
environment's action dtype. Random actions are mixed in here too, from each episode's own generator.
Which policy fits which environment is told by config.schema.yaml. The user's own policies stand in
file_policy, saved models in sb3_policy, recordings, which need no policy, in recorded.

Every policy has `check(environment)`, called once before it plays; `generators(seeds)`, one random
generator per lane with `take(lanes)`; and `act(observations, environment, generators)`, which
returns the actions and the generators after their draws. The observations are (lanes, 2) float32
in Mountain Car, elsewhere a list of what Gymnasium gave.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from goalreel.environments.action_space import ActionSpace
from goalreel.environments.physics import Environment
from goalreel.environments.seeding import Pcg64, action_generators
from goalreel.errors import GoalreelError

LEFT, RIGHT = 0, 2


def _push(right: np.ndarray, environment: Environment, force: float) -> np.ndarray:
    """Return actions that push right where `right`, else left, with `force` where it is chosen."""
    if environment.continuous:
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

    def check(self, environment) -> None:
        """Raise GoalreelError if the policy cannot play the environment."""
        if not isinstance(environment, Environment):
            environment.actions.scaled(
                np.zeros((len(environment.actions.low), 1))
            )  # has it bounds?

    def generators(self, seeds: np.ndarray) -> Pcg64:
        """Return each episode's own generator of random actions."""
        return action_generators(seeds)

    def act(
        self, observations: np.ndarray, environment: Environment, generators: Pcg64
    ) -> tuple[np.ndarray, Pcg64]:
        """Return the actions (lanes,) and the generators after their draws.

        With epsilon > 0 each step draws two doubles of the episode's generator: the first is
        compared with epsilon, the second chooses uniformly among 0, 1, 2 or within -1 to 1. In
        other environments it draws one for each number of an action after the first, unused.
        """
        if not isinstance(environment, Environment):
            return _drawn(environment.actions, generators)
        if self.epsilon == 0:
            return self.rule(observations, environment), generators
        generators, coin = generators.random()
        generators, choice = generators.random()
        drawn = 2 * choice - 1 if environment.continuous else np.floor(3 * choice)
        if self.epsilon == 1:
            return drawn.astype(environment.action_dtype), generators
        chosen = np.where(coin < self.epsilon, drawn, self.rule(observations, environment))
        return chosen.astype(environment.action_dtype), generators


def _drawn(space: ActionSpace, generators: Pcg64) -> tuple[np.ndarray, Pcg64]:
    """Return uniformly random actions of a space, and the generators after their draws."""
    generators, _ = generators.random()
    draws = []
    for _ in space.low:
        generators, draw = generators.random()
        draws.append(draw)
    return space.scaled(draws), generators


def make_policy(config: Mapping, learned: Path | None = None) -> Policy:
    """Return the policy of a checked `policy` section: its name, and what else it takes.

    learned: the trainer's file, for sarsa, which plays its last checkpoint, and for dqn. Raises
    GoalreelError for a name that is not known here, and for a file that cannot be used.
    """
    name = config["name"]
    if name == "file":
        from goalreel.policies.user_function import FilePolicy

        return FilePolicy.load(config["file"], config["function"])
    if name == "sb3":
        from goalreel.policies.stable_baselines3 import Sb3Policy

        return Sb3Policy.load(config["file"], config["algorithm"])
    epsilon = float(config.get("epsilon", 0.0))
    if name == "sarsa":
        from goalreel.policies.tile_policy import greedy, read_policies

        if learned is None:
            raise GoalreelError("the policy sarsa is learned first; name its file with --policy")
        return Policy(greedy(read_policies(learned).weights[-1]), epsilon)
    if name == "dqn":
        from goalreel.policies.network_file import read_checkpoints

        if learned is None:
            raise GoalreelError("the policy dqn is trained first; name its file with --policy")
        kept = read_checkpoints(learned)
        network = kept.network(kept.choose(config.get("checkpoint", "best")))
        return Policy(lambda observations, env: network.act(observations), epsilon)
    if name == "random":
        return Policy(pump, 1.0)  # every action is drawn: the rule is never asked
    if name == "near_optimal":
        return Policy(near_optimal, epsilon)
    if name == "pump":
        force = float(config.get("force", 1.0))
        return Policy(lambda observations, env: pump(observations, env, force), epsilon)
    raise GoalreelError(f"unknown policy {name!r}")
