"""Episodes: what a policy does from a seed until the environment ends it.

An episode is a function of its seed, environment and policy alone, whatever is simulated beside
it. Which seeds are tried, and which episodes are kept, stands in reaches; how Gymnasium plays
environments that are not computed here, in gym_episodes.
"""

from dataclasses import dataclass

import numpy as np

from goalreel.environments.physics import Environment, reset
from goalreel.policies.policy import Policy

# Lanes that have ended are stepped on until so many of them have gathered: dropping them costs.
_DROP_SHARE = 0.25


@dataclass(frozen=True)
class Episodes:
    """A batch of whole episodes, each axis 0 of length `episodes`.

    states: (episodes, steps_max + 1, 2) float64, position and velocity, row 0 the reset state; of
    another environment its observations, (episodes, steps_max + 1, width), see gym_env
    actions: (episodes, steps_max) int8, or float32 in MountainCarContinuous-v0; of another
    environment (episodes, steps_max, *stored_shape), see spaces
    rewards: (episodes, steps_max) float64
    seeds: int64; steps: int64, the number of valid actions (what stands behind it is not defined)
    returns: float64, the rewards summed in order; terminated, truncated: bool
    """

    seeds: np.ndarray
    states: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    steps: np.ndarray
    returns: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray


def simulate_episodes(seeds: np.ndarray, environment, policy: Policy) -> Episodes:
    """Play one episode from each seed, all of them side by side.

    environment: a physics.Environment, or a gym_env.GymEnvironment, which Gymnasium steps

    seeds: (episodes,) integers in [0, 2**53), as `env.reset(seed=...)` takes them. The result of
    an episode is the same for any company, so one attempt is replayed by a batch of one.
    """
    seeds = np.asarray(seeds, np.int64)
    if not isinstance(environment, Environment):
        from goalreel.simulation.gymnasium_episodes import simulate_gym_episodes

        return simulate_gym_episodes(seeds, environment, policy)
    count, limit = len(seeds), environment.max_steps
    # Time is the first axis while stepping: each step then writes contiguous rows.
    states = np.empty((limit + 1, 2, count))
    actions = np.zeros((limit, count), environment.action_dtype)
    rewards = np.zeros((limit, count))
    steps = np.full(count, limit)
    returns = np.zeros(count)
    terminated = np.zeros(count, bool)

    lanes = np.arange(count)
    state, generators = reset(seeds), policy.generators(seeds)
    states[0, 0], states[0, 1] = state.positions, state.velocities
    running = np.ones(count, bool)
    for t in range(limit):
        chosen, generators = policy.act(state.observations(), environment, generators)
        state, reward, goal = environment.step(state, chosen)
        everyone = slice(None) if len(lanes) == count else lanes
        actions[t, everyone], rewards[t, everyone] = chosen, reward
        states[t + 1, 0, everyone], states[t + 1, 1, everyone] = state.positions, state.velocities
        returns[lanes] += np.where(running, reward, 0.0)
        arrived = lanes[running & goal]
        steps[arrived], terminated[arrived] = t + 1, True
        running &= ~goal
        left = np.count_nonzero(running)
        if left == 0:
            break
        if left < (1 - _DROP_SHARE) * len(lanes):
            lanes, state, generators = lanes[running], state.take(running), generators.take(running)
            running = np.ones(left, bool)

    longest = int(steps.max(initial=0))
    return Episodes(
        seeds=seeds,
        states=states[: longest + 1].transpose(2, 0, 1),
        actions=actions[:longest].T,
        rewards=rewards[:longest].T,
        steps=steps,
        returns=returns,
        terminated=terminated,
        truncated=steps >= limit,  # as TimeLimit says it, also of a goal at the last step
    )
