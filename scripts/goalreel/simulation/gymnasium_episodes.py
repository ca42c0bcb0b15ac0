"""Episodes of any Gymnasium environment: some instances in lockstep, stepped by Gymnasium.

The counterpart of episodes.simulate_episodes, whose result it gives. An environment is made in
gym_env; the seeds are chosen in reaches.
"""

import numpy as np

from goalreel.environments.gymnasium_env import GymEnvironment, step_of
from goalreel.errors import GoalreelError
from goalreel.simulation.episodes import Episodes

# Instances at a time: a policy may work on a batch, and Gymnasium steps them one by one anyway.
_LANES = 16
# An episode that goes on so long has no end of its own.
_MOST_STEPS = 1_000_000


class _Lane:
    """One episode in the making: a new instance, and what it has given so far."""

    def __init__(self, environment: GymEnvironment, seed: int):
        self.environment, self.seed = environment, seed
        self.env = environment.make()
        self.observation, _ = self.env.reset(seed=seed)
        self.states = [environment.stored(self.observation)]
        self.actions, self.rewards = [], []
        self.terminated = self.truncated = False

    @property
    def running(self) -> bool:
        return not (self.terminated or self.truncated)

    def step(self, action: np.ndarray) -> None:
        taken = self.environment.actions.taken(action)
        self.observation, reward, terminated, truncated, _ = step_of(self.env, taken, self.seed)
        self.terminated, self.truncated = bool(terminated), bool(truncated)
        self.states.append(self.environment.stored(self.observation))
        self.actions.append(action)
        self.rewards.append(float(reward))
        if self.running and len(self.actions) >= _MOST_STEPS:
            raise GoalreelError(
                f"{self.environment.id}: the episode of seed {self.seed} has not ended after "
                f"{_MOST_STEPS:,} steps; set max_steps, its time limit"
            )


def simulate_gym_episodes(seeds: np.ndarray, environment: GymEnvironment, policy) -> Episodes:
    """Play one episode from each seed; see episodes.simulate_episodes.

    Raises GoalreelError if an episode does not end, and what the policy raises.
    """
    lanes = []
    for first in range(0, len(seeds), _LANES):
        lanes += _play(seeds[first : first + _LANES], environment, policy)
    steps = np.array([len(lane.actions) for lane in lanes], np.int64)
    longest = int(steps.max(initial=0))
    space = environment.actions
    states = np.zeros((len(lanes), longest + 1, environment.width))
    actions = np.zeros((len(lanes), longest, *space.stored_shape), space.stored_dtype)
    rewards = np.zeros((len(lanes), longest))
    returns = np.zeros(len(lanes))
    for row, lane in enumerate(lanes):
        states[row, : steps[row] + 1] = lane.states
        actions[row, : steps[row]] = lane.actions
        rewards[row, : steps[row]] = lane.rewards
        for reward in lane.rewards:  # in order: as a user who steps would sum them
            returns[row] += reward
    return Episodes(
        seeds=seeds,
        states=states,
        actions=actions,
        rewards=rewards,
        steps=steps,
        returns=returns,
        terminated=np.array([lane.terminated for lane in lanes], bool),
        truncated=np.array([lane.truncated for lane in lanes], bool),
    )


def _play(seeds: np.ndarray, environment: GymEnvironment, policy) -> list[_Lane]:
    lanes = [_Lane(environment, seed) for seed in seeds.tolist()]
    generators = policy.generators(seeds)
    running = lanes
    try:
        while running:
            seen = [lane.observation for lane in running]
            actions, generators = policy.act(seen, environment, generators)
            for lane, action in zip(running, actions, strict=True):
                lane.step(action)
            going = np.array([lane.running for lane in running])
            if not going.all():
                running = [lane for lane in running if lane.running]
                generators = generators.take(going)
    finally:
        for lane in lanes:
            lane.env.close()
    return lanes
