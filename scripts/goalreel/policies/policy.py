"""Policies, which choose the actions of sub-environments from their observations.

parameters.py lists the environments of each policy. simulation.recorded_episodes replays
recordings, which need no policy.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from goalreel.environments.environment import Acted, Environment
from goalreel.environments.mountain_car import MountainCar
from goalreel.environments.seeding import Pcg64, action_generators
from goalreel.errors import GoalreelError, unknown
from goalreel.policies.parameters import PARAMETERS

LEFT, RIGHT = 0, 2
# (observations (num_envs, 2) float32, environment) -> actions (num_envs,)
Rule = Callable[[np.ndarray, MountainCar], np.ndarray]


class Policy(Protocol):
    """A policy, whose actions each depend only on their own sub-environment."""

    def check(self, environment: Environment) -> None:
        """Raise GoalreelError if the policy cannot play the environment, before the first step."""

    def generators(self, seeds: np.ndarray) -> Any:
        """Return a generator for each episode, with a method `take(mask)` to select some."""

    def act(self, observations: Sequence, environment: Environment, generators: Any) -> Acted:
        """Return the actions, (num_envs, *stored_shape), the generators, and the signals."""


def pump(observations: np.ndarray, environment: MountainCar, force: float = 1.0) -> np.ndarray:
    """Push along the velocity, and right when it is zero; `force` is for continuous actions."""
    right = observations[:, 1] >= 0
    if environment.continuous:
        return np.where(right, force, -force).astype(np.float32)
    return np.where(right, RIGHT, LEFT).astype(np.int8)


def near_optimal(observations: np.ndarray, environment: MountainCar) -> np.ndarray:
    """Push right between two curves of the phase plane, else left: about 105 steps to the goal.

    This is Z. Xiao's closed-form policy for MountainCar-v0 ("Reinforcement Learning: Theory and
    Python Implementation"). Products are grouped so that every machine rounds them in the same
    way.
    """
    position, velocity = observations.astype(np.float64).T
    upper = -0.07 * np.square(position + 0.38) + 0.07
    parabola = -0.09 * np.square(position + 0.25) + 0.03
    quartic = 0.3 * np.square(np.square(position + 0.9)) - 0.008
    right = (np.minimum(parabola, quartic) <= velocity) & (velocity <= upper)
    return np.where(right, RIGHT, LEFT).astype(np.int8)


@dataclass(frozen=True)
class RulePolicy:
    """A rule, with a share `epsilon` of random actions."""

    rule: Rule
    epsilon: float

    def check(self, environment: Environment) -> None:
        """Raise GoalreelError if random actions are needed of a space without bounds."""
        space = environment.actions
        if self.epsilon and not np.isfinite([space.low, space.high]).all():
            problem = f"'random' needs actions with bounds, not {space}"
            raise GoalreelError(f"policy.name: {problem}. Use another policy.")

    def generators(self, seeds: np.ndarray) -> Pcg64:
        """Return a generator of random actions for each episode."""
        return action_generators(seeds)

    def act(self, observations: Sequence, environment: Environment, generators: Pcg64) -> Acted:
        """Return the actions (num_envs, ...) and the generators after their draws.

        If epsilon > 0, each step draws one double from the generator of the episode, compares it
        with epsilon, and draws one more double for each number of a random action.
        """
        if self.epsilon == 0:
            return self.rule(observations, environment), generators, {}
        generators, coin = generators.random()
        space, draws = environment.actions, []
        for _ in space.low:
            generators, draw = generators.random()
            draws.append(draw)
        drawn = space.from_uniform(draws)
        if self.epsilon < 1:
            drawn = np.where(coin < self.epsilon, drawn, self.rule(observations, environment))
        return drawn, generators, {}


def make_policy(config: Mapping, trained: Path | None = None) -> Policy:
    """Return the policy of a checked `policy` section.

    `trained` is the network of the run's own training, if the section names no file. Raises
    GoalreelError if the name is unknown, or if a file cannot be used.
    """
    name, epsilon = config["name"], float(config.get("epsilon", 0.0))
    trained = config.get("file") or trained
    if name == "trained" and trained is None:
        raise GoalreelError(f"policy.name: {name!r} is not trained yet. Name its file by --policy.")
    if name == "python":
        from goalreel.policies.user_function import load_policy

        return load_policy(config["file"], config["function"], config.get("batch") is not False)
    if name == "sb3":
        from goalreel.policies.stable_baselines3 import Sb3Policy

        return Sb3Policy.load(config)
    if name == "onnx":
        from goalreel.policies.onnx_policy import OnnxPolicy

        return OnnxPolicy.load(config["file"])
    if name == "trained":
        from goalreel.policies.trained_policy import TrainedPolicy

        return TrainedPolicy.load(trained, config.get("checkpoint", "best"))
    if name == "random":
        return RulePolicy(pump, 1.0)  # all actions are random
    if name == "near_optimal":
        return RulePolicy(near_optimal, epsilon)
    if name == "pump":
        force = float(config.get("force", 1.0))
        return RulePolicy(lambda observations, env: pump(observations, env, force), epsilon)
    raise GoalreelError(f"policy.name: {unknown('value', name, PARAMETERS)}")
