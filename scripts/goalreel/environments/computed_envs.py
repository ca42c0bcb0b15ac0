"""Sub-environments that are computed together, as arrays."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

# States, (width, num_envs), after an action, the rewards, and which terminated, (num_envs,) each.
Transition = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass
class ComputedEnvs:
    """Sub-environments after the same number of steps; see environment.SubEnvs."""

    now: np.ndarray  # the states, (width, num_envs)
    observe: Callable[[np.ndarray], np.ndarray]  # returns what a policy sees of states
    transition: Callable[[np.ndarray, np.ndarray], Transition]
    limit: int  # of steps
    steps: int = 0

    def observations(self) -> np.ndarray:
        """Return what the policy sees, (num_envs, ...)."""
        return self.observe(self.now)

    def states(self) -> np.ndarray:
        """Return the states, (width, num_envs)."""
        return self.now

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Take an action in each; see SubEnvs."""
        self.now, rewards, terminated = self.transition(self.now, actions)
        self.steps += 1
        # As TimeLimit says it, also of a goal at the last step.
        return rewards, terminated, np.full(len(rewards), self.steps >= self.limit)

    def take(self, mask: np.ndarray) -> "ComputedEnvs":
        """Return those chosen by a (num_envs,) boolean mask."""
        return replace(self, now=self.now[:, mask])

    def close(self) -> None:
        """Release nothing."""
