"""Step the two Mountain Cars in batches, bit for bit like Gymnasium 1.4.0.

The order of operations is that of gymnasium/envs/classic_control/mountain_car.py and
continuous_mountain_car.py. Regrouping a sum would change one sample in eight. `ComputedEnvs`
also holds the environments of classic_control.
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from goalreel.environments.action_space import ActionSpace
from goalreel.environments.registry import MAX_POSITION, MAX_SPEED, MIN_POSITION, MOUNTAIN_CARS
from goalreel.environments.seeding import uniform

# Gymnasium calls `math.cos`. `np.cos` is five times as fast, and equal if both call the same libm.
# If a sample shows a difference, `math.cos` computes each element.
_ANGLES = np.linspace(3 * MIN_POSITION, 3 * MAX_POSITION, 4099)
_cos = np.vectorize(math.cos, otypes=[np.float64])
if np.array_equal(np.cos(_ANGLES), _cos(_ANGLES)):
    _cos = np.cos

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

    def info(self, index: int) -> dict[str, float]:
        """Return no numbers."""
        return {}

    def take(self, mask: np.ndarray) -> "ComputedEnvs":
        """Return the sub-environments that a (num_envs,) boolean mask selects."""
        return replace(self, now=self.now[:, mask])

    def close(self) -> None:
        """Do nothing: arrays hold no resources."""


def probe() -> str:
    """Return the sha256 of cosines, sines and reset states that this machine computes.

    Machines whose libm or compiler differ in the last bit give different trajectories for the same
    seed. The hash, of 64 hexadecimal digits, distinguishes them.
    """
    angles = np.linspace(3 * MIN_POSITION, 3 * MAX_POSITION, 65_537)
    hashed = hashlib.sha256(_cos(angles).astype("<f8").tobytes())
    hashed.update(np.sin(angles).astype("<f8").tobytes())  # for classic_control
    hashed.update(reset(np.arange(1000))[0].astype("<f8").tobytes())
    return hashed.hexdigest()


def observations(states: np.ndarray) -> np.ndarray:
    """Return the observations, (num_envs, 2) float32, of states (2, num_envs)."""
    return np.ascontiguousarray(states.T, np.float32)


@dataclass(frozen=True)
class MountainCar:
    """One of the two Mountain Cars, with the parameters in which they differ."""

    id: str
    max_episode_steps: int
    goal_position: float
    action_dtype: type  # the dtype of a stored action, int8 or float32
    goal_velocity: float = 0.0  # the least velocity at the goal, a keyword of gymnasium.make
    observe: Callable[[np.ndarray], np.ndarray] = observations  # returns observations for states

    width: ClassVar = 2  # a recorded state is a position and a velocity
    num_poses: ClassVar = 0
    max_envs: ClassVar = 1 << 16  # limits memory; larger batches are no faster
    idle_share: ClassVar = 0.25  # stepping finished ones costs less than dropping each

    def step(self, states: np.ndarray, actions: np.ndarray) -> Transition:
        """Return the next (2, num_envs) positions and velocities, the rewards, and terminations.

        As in Gymnasium, the states of MountainCarContinuous-v0 are float64 after the reset and
        float32 afterwards.
        """
        return (_step_continuous if self.continuous else _step_discrete)(self, states, actions)

    @property
    def continuous(self) -> bool:
        """Whether an action is a force instead of one of three pushes."""
        return self.action_dtype is np.float32

    @cached_property
    def actions(self) -> ActionSpace:
        """The action space of the Gymnasium environment."""
        if self.continuous:
            bound = np.array([1.0])
            return ActionSpace((1,), np.float32, -bound, bound, self.action_dtype)
        return ActionSpace((), np.int64, np.array([0]), np.array([2]), self.action_dtype)

    def sub_envs(self, seeds: np.ndarray) -> ComputedEnvs:
        """Return cars in the state after `env.reset(seed=seed)`."""
        return ComputedEnvs(reset(seeds), self.observe, self.step, self.max_episode_steps)

    def batch(self, observations) -> np.ndarray:
        """Return observations as one array, (num_envs, 2)."""
        return np.asarray(observations)

    def sample_observations(self, count: int) -> np.ndarray:
        """Return examples of observations, (count, ...): those of the resets of seeds 0, 1, ..."""
        return self.observe(reset(np.arange(count)))


def reset(seeds: np.ndarray) -> np.ndarray:
    """Return the states (2, num_envs) after `env.reset(seed=seed)`, equal for both cars."""
    positions = uniform(seeds, np.array([-0.6]), np.array([-0.4]))
    return np.concatenate([positions, np.zeros_like(positions)])


def _step_discrete(car: MountainCar, states: np.ndarray, actions: np.ndarray) -> Transition:
    """Step MountainCar-v0 by actions (num_envs,) of 0 (push left), 1 (coast), 2 (push right)."""
    (positions, velocities), force, gravity = states, 0.001, 0.0025
    push = (actions.astype(np.int64) - 1) * force  # signed, so that 0 - 1 does not wrap around
    velocities = velocities + (push + _cos(3 * positions) * (-gravity))
    velocities = np.clip(velocities, -MAX_SPEED, MAX_SPEED)
    positions = np.clip(positions + velocities, MIN_POSITION, MAX_POSITION)
    velocities[(positions == MIN_POSITION) & (velocities < 0)] = 0
    arrived = positions >= car.goal_position
    terminated = arrived & (velocities >= car.goal_velocity)
    return np.stack([positions, velocities]), np.full(len(positions), -1.0), terminated


def _step_continuous(car: MountainCar, states: np.ndarray, actions: np.ndarray) -> Transition:
    """Step MountainCarContinuous-v0 by actions (num_envs,) float32, forces clipped to [-1, 1]."""
    # Gymnasium's scalars follow NumPy 2's promotion. A force within the limits stays float32, as
    # does its sum with the pull. A clipped force is a Python float, which makes the sum float64.
    (positions, velocities), power, gravity = states, 0.0015, 0.0025
    pull = gravity * _cos((3 * positions).astype(np.float64))
    push = np.where(
        np.abs(actions) <= 1,
        (actions * np.float32(power) - pull.astype(np.float32)).astype(np.float64),
        np.clip(actions, -1, 1).astype(np.float64) * power - pull,
    )
    dtype = states.dtype
    pushed = velocities + push.astype(dtype)
    velocities = np.clip(pushed, -MAX_SPEED, MAX_SPEED, dtype=dtype)
    positions = np.clip(positions + velocities, MIN_POSITION, MAX_POSITION, dtype=dtype)
    low = dtype.type(MIN_POSITION)
    velocities = np.where((positions == low) & (velocities < 0), dtype.type(0), velocities)
    fast = velocities >= dtype.type(car.goal_velocity)
    if car.goal_velocity != 0:
        # A clipped velocity is a Python float, which is compared as float64.
        limited = np.clip(velocities.astype(np.float64), -MAX_SPEED, MAX_SPEED)
        fast = np.where(pushed != velocities, limited >= car.goal_velocity, fast)
    terminated = (positions >= dtype.type(car.goal_position)) & fast
    squares = actions.astype(np.float64) * actions.astype(np.float64)
    rewards = np.where(terminated, 100.0, 0.0) - squares * 0.1
    return np.stack([positions, velocities]).astype(np.float32), rewards, terminated


_DISCRETE, _CONTINUOUS = MOUNTAIN_CARS.values()
DISCRETE = MountainCar(_DISCRETE.id, 200, _DISCRETE.goal_position, np.int8)
CONTINUOUS = MountainCar(_CONTINUOUS.id, 999, _CONTINUOUS.goal_position, np.float32)
ENVIRONMENTS = {environment.id: environment for environment in (DISCRETE, CONTINUOUS)}
