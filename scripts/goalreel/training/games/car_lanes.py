"""MountainCar-v0 for training: environments side by side, whose episodes follow one another.

Two kinds with the same transitions, bit for bit: Gymnasium's own, each with the wrappers of
`gymnasium.make`, and the same car computed here. Episode n of lane k has a seed of its own, whoever
steps it.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from goalreel.environments.mountain_car import DISCRETE, State, reset
from goalreel.environments.registry import MAX_POSITION, MAX_SPEED, MIN_POSITION
from goalreel.environments.seeding import SEED_BITS

_FORCE, _GRAVITY = 0.001, 0.0025  # of Gymnasium's MountainCarEnv


@dataclass(frozen=True)
class Step:
    """A step of all lanes."""

    frames: int  # steps of the environment that it took, all lanes' together
    lasted: np.ndarray  # (lanes,) int64, of each: `frame_skip`, fewer at an episode's end
    rewards: np.ndarray  # (lanes,) float64, the sums over those frames
    terminated: np.ndarray  # (lanes,) bool
    truncated: np.ndarray  # (lanes,) bool
    next_obs: np.ndarray  # (lanes, 2) float32, what the step led to, at an episode's end too
    obs: np.ndarray  # (lanes, 2) float32, what to act on next: after an end, of the next reset


def _seeds(root: int, lane: int) -> Iterator[int]:
    """Yield the seeds of a lane's episodes."""
    for block in itertools.count():
        key = (lane, block, 0)  # as long as no other spawn key here
        words = np.random.SeedSequence(root, spawn_key=key).generate_state(64, np.uint64)
        yield from (words >> np.uint64(64 - SEED_BITS)).astype(np.int64).tolist()


class WrappedCars:
    """Gymnasium's environments as `gymnasium.make` gives them, stepped one after another.

    Attributes:
        obs: (lanes, 2) float32, the first observations.
    """

    def __init__(self, seed: int, lanes: int, frame_skip: int):
        """Reset all lanes."""
        import gymnasium

        self._seeds, self._frame_skip = [_seeds(seed, n) for n in range(lanes)], frame_skip
        self._cars = [gymnasium.make(DISCRETE.id) for _ in range(lanes)]
        self.obs = np.stack([self._reset(lane) for lane in range(lanes)])

    def _reset(self, lane: int) -> np.ndarray:
        return self._cars[lane].reset(seed=next(self._seeds[lane]))[0]

    def step(self, actions: np.ndarray) -> Step:
        """Repeat each action for `frame_skip` frames, or until its episode ends."""
        rows = []
        for lane, action in enumerate(actions.tolist()):
            total, lasted = 0.0, 0
            for _ in range(self._frame_skip):
                next_obs, reward, terminated, truncated, _ = self._cars[lane].step(action)
                total, lasted = total + reward, lasted + 1
                if terminated or truncated:
                    break
            obs = self._reset(lane) if terminated or truncated else next_obs
            rows.append((lasted, total, terminated, truncated, next_obs, obs))
        lasted, *columns = map(np.array, zip(*rows, strict=True))
        return Step(int(lasted.sum()), lasted, *columns)


class Lanes:
    """The same cars computed here, in plain Python.

    A step of a car takes about 1.2 µs, as much as one of the 30 calls of NumPy that would step all
    cars at once: up to some 60 lanes those take longer.

    Attributes:
        positions: (lanes,) float64, the cars' positions.
        obs: (lanes, 2) float32, what to act on next.
        reached: (lanes,) float64, the positions that the last step led to, before any reset.
    """

    def __init__(self, seed: int, lanes: int, frame_skip: int):
        """Reset all lanes."""
        self._seeds, self._frame_skip = [_seeds(seed, n) for n in range(lanes)], frame_skip
        state = reset(np.array([next(seeds) for seeds in self._seeds]))
        self._steps, self._velocities = [0] * lanes, [0.0] * lanes
        self.positions, self.obs = state.positions, state.observations()

    def step(self, actions: np.ndarray) -> Step:
        """Repeat each action for `frame_skip` frames, or until its episode ends."""
        before = self._steps.copy()
        positions, arrived = self.positions.tolist(), [False] * len(before)
        for lane, action in enumerate(actions.tolist()):
            position, velocity = positions[lane], self._velocities[lane]
            push, steps = (action - 1) * _FORCE, before[lane]
            last = min(steps + self._frame_skip, DISCRETE.max_steps)
            while steps < last and not arrived[lane]:
                velocity += push + math.cos(3 * position) * -_GRAVITY
                velocity = min(max(velocity, -MAX_SPEED), MAX_SPEED)
                position = min(max(position + velocity, MIN_POSITION), MAX_POSITION)
                if position == MIN_POSITION and velocity < 0:
                    velocity = 0.0
                arrived[lane] = position >= DISCRETE.goal_position and velocity >= 0
                steps += 1
            positions[lane], self._velocities[lane], self._steps[lane] = position, velocity, steps
        lasted = np.array(self._steps) - before
        truncated = np.array(self._steps) >= DISCRETE.max_steps
        self.reached = np.array(positions)
        self.positions = self.reached.copy()
        next_obs = State(self.reached, np.array(self._velocities)).observations()
        terminated = np.array(arrived)
        for lane in np.flatnonzero(terminated | truncated).tolist():
            first = reset(np.array([next(self._seeds[lane])]))
            self.positions[lane], self._velocities[lane] = first.positions[0], 0.0
            self._steps[lane] = 0
        self.obs = State(self.positions, np.array(self._velocities)).observations()
        frames = int(lasted.sum())
        return Step(frames, lasted, -1.0 * lasted, terminated, truncated, next_obs, self.obs)
