"""MountainCar-v0 for training: environments side by side, whose episodes follow one another.

Two kinds with the same transitions, bit for bit: Gymnasium's own, each with the wrappers of
`gymnasium.make`, and the lanes of physics. Episode n of lane k has a seed of its own, whoever
steps it.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from goalreel.environments.physics import DISCRETE, State, reset
from goalreel.environments.seeding import SEED_BITS


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
    """The cars of physics, all stepped at once.

    Attributes:
        obs: (lanes, 2) float32, what to act on next.
        reached: (lanes,) float64, the positions that the last step led to, before any reset.
    """

    def __init__(self, seed: int, lanes: int, frame_skip: int):
        """Reset all lanes."""
        self._seeds, self._frame_skip = [_seeds(seed, n) for n in range(lanes)], frame_skip
        self._state = reset(np.array([next(seeds) for seeds in self._seeds]))
        self._steps = np.zeros(lanes, np.int64)
        self.obs = self._state.observations()

    @property
    def positions(self) -> np.ndarray:
        """The cars' positions, (lanes,) float64, which `obs` rounds."""
        return self._state.positions

    def step(self, actions: np.ndarray) -> Step:
        """Repeat each action for `frame_skip` frames, or until its episode ends."""
        lanes = len(actions)
        positions, velocities = self._state.positions.copy(), self._state.velocities.copy()
        rewards, terminated = np.zeros(lanes), np.zeros(lanes, bool)
        active, lasted = np.arange(lanes), np.zeros(lanes, np.int64)
        for _ in range(self._frame_skip):
            state = State(positions[active], velocities[active])
            state, reward, arrived = DISCRETE.step(state, actions[active])
            positions[active], velocities[active] = state.positions, state.velocities
            rewards[active] += reward
            terminated[active] = arrived
            self._steps[active] += 1
            lasted[active] += 1
            active = active[~arrived & (self._steps[active] < DISCRETE.max_steps)]
            if not len(active):
                break
        truncated = self._steps >= DISCRETE.max_steps
        self.reached = positions.copy()
        next_obs = State(positions, velocities).observations()
        for lane in np.flatnonzero(terminated | truncated):
            first = reset(np.array([next(self._seeds[lane])]))
            positions[lane], velocities[lane] = first.positions[0], first.velocities[0]
            self._steps[lane] = 0
        self._state = State(positions, velocities)
        self.obs = self._state.observations()
        frames = int(lasted.sum())
        return Step(frames, lasted, rewards, terminated, truncated, next_obs, self.obs)
