"""A learner at several ages, whoever taught it: what it does then, for the film of learning.

How weights choose actions stands in learned for SARSA, in dqn.greedy for deep Q-learning.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from goalreel.environments.physics import MountainCar

Rule = Callable[[np.ndarray, MountainCar], np.ndarray]
_MOST = 5  # ages of a network that are filmed


@dataclass(frozen=True)
class Ages:
    """What a learner does at each age.

    unit: what ages count, "episode" or "frame" of training; ages: increasing; rules: of each age,
    (observations, environment) -> actions; spec: how they were learned
    """

    unit: str
    ages: tuple[int, ...]
    rules: tuple[Rule, ...]
    spec: str

    def told(self, age: int) -> str:
        """Return an age in words."""
        return f"{age:,} {self.unit}{'' if age == 1 else 's'}"


def read_ages(path: Path, checkpoint: str | int | None) -> Ages:
    """Read what a trainer kept: every age of SARSA, up to five of deep Q-learning.

    checkpoint: None for SARSA, else the one of the networks that is filmed last, `best`, `last` or
    an age; the others are spread evenly before it. Raises GoalreelError, naming the file, if it
    cannot be used.
    """
    if checkpoint is None:
        from goalreel.policies.tile_policy import read_policies

        return of_sarsa(read_policies(path))
    from goalreel.policies.network_file import read_checkpoints

    kept = read_checkpoints(path)
    chosen = np.linspace(0, kept.choose(checkpoint), _MOST).round().astype(int)
    places = sorted(set(chosen.tolist()))
    networks = [kept.network(place) for place in places]
    rules = tuple(lambda seen, env, network=network: network.act(seen) for network in networks)
    return Ages("frame", tuple(kept.ages[place] for place in places), rules, kept.spec)


def of_sarsa(policies) -> Ages:
    """Return the ages of SARSA's policies (learned.LearnedPolicies)."""
    from goalreel.policies.tile_policy import greedy

    rules = tuple(greedy(weights) for weights in policies.weights)
    return Ages("episode", tuple(policies.ages.tolist()), rules, policies.spec)
