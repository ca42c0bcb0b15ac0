"""Sub-environments whose states goalreel steps together in one array."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

# The next states (width, num_envs), the rewards (num_envs,) and which terminated (num_envs,).
Transition = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass
class ComputedEnvs:
    """Sub-environments that have all taken the same number of steps (see SubEnvs)."""

    now: np.ndarray  # current states, (width, num_envs)
    observe: Callable[[np.ndarray], np.ndarray]  # returns observations for states
    transition: Callable[[np.ndarray, np.ndarray], Transition]
    limit: int  # the time limit in steps
    steps: int = 0

    def observations(self) -> np.ndarray:
        """Return the observations, (num_envs, ...)."""
        return self.observe(self.now)

    def states(self) -> np.ndarray:
        """Return the states, (width, num_envs)."""
        return self.now

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Take one action in each sub-environment (see SubEnvs)."""
        self.now, rewards, terminated = self.transition(self.now, actions)
        self.steps += 1
        # Like TimeLimit, this also truncates an episode that terminates at its last step.
        return rewards, terminated, np.full(len(rewards), self.steps >= self.limit)

    def take(self, mask: np.ndarray) -> "ComputedEnvs":
        """Return the sub-environments that a (num_envs,) boolean mask selects."""
        return replace(self, now=self.now[:, mask])

    def close(self) -> None:
        """Do nothing: arrays hold no resources."""
