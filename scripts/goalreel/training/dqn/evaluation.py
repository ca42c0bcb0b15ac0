"""Play of a policy on 100 fixed seeds, all at once: how good a policy is."""

from dataclasses import dataclass

import numpy as np

from goalreel.environments.physics import DISCRETE, reset

EPISODES = 100
_FIRST_SEED = 10_000  # far from any that a training is likely to name; fixed for all


@dataclass(frozen=True)
class Evaluation:
    """Of a policy, after so many frames and seconds of training.

    returns: (n,) float64, of its episodes
    """

    frames: int
    returns: np.ndarray
    seconds: float = 0.0

    @property
    def mean(self) -> float:
        """The mean return."""
        return float(self.returns.mean())


def evaluate(act, frames: int, seconds: float = 0.0, episodes: int = EPISODES) -> Evaluation:
    """Play, an action a step; `act` gives (n, 2) float32 observations their actions, (n,) int8."""
    state = reset(_FIRST_SEED + np.arange(episodes))
    returns, open_ = np.zeros(episodes), np.arange(episodes)
    for _ in range(DISCRETE.max_steps):
        actions = act(state.observations())
        state, rewards, terminated = DISCRETE.step(state, actions)
        returns[open_] += rewards
        going = ~terminated
        state, open_ = state.take(going), open_[going]
        if not len(open_):
            break
    return Evaluation(frames, returns, seconds)
