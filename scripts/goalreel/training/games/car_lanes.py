"""MountainCar-v0 for training: environments side by side, whose episodes follow one another.

Two kinds with the same transitions, bit for bit (a test compares them): Gymnasium's own, each with
the wrappers of `gymnasium.make`, and the lanes of physics. Episode n of lane k has a seed of its
own, whoever steps it.
"""

from dataclasses import dataclass

import numpy as np

from goalreel.environments.physics import DISCRETE, State, reset
from goalreel.environments.seeding import SEED_BITS

_SEEDS_AT_ONCE = 64


@dataclass(frozen=True)
class Step:
    """What a step of all lanes gives; (lanes, ...) arrays.

    frames: steps of the environment that it took, all lanes' together
    lasted: (lanes,) int64, how many each lane's action lasted: `skip`, fewer at an episode's end
    rewards: (lanes,) float64, the sums over those steps
    after: (lanes, 2) float32, what was seen then, at an episode's end too
    seen: (lanes, 2) float32, what to act on next: after an end, that of the next reset
    """

    frames: int
    lasted: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    after: np.ndarray
    seen: np.ndarray


class _Seeds:
    """The seeds of all episodes, lane by lane."""

    def __init__(self, seed: int, lanes: int):
        self._root, self._next = seed, np.zeros(lanes, np.int64)
        self._drawn: list[np.ndarray] = [np.zeros(0, np.int64)] * lanes

    def next(self, lane: int) -> int:
        place = int(self._next[lane])
        if place >= len(self._drawn[lane]):
            key = (lane, place // _SEEDS_AT_ONCE, 0)  # as long as no other spawn key here
            words = np.random.SeedSequence(self._root, spawn_key=key).generate_state(
                _SEEDS_AT_ONCE, np.uint64
            )
            drawn = (words >> np.uint64(64 - SEED_BITS)).astype(np.int64)
            self._drawn[lane] = np.concatenate([self._drawn[lane], drawn])
        self._next[lane] += 1
        return int(self._drawn[lane][place])


class WrappedCars:
    """Gymnasium's environments as `gymnasium.make` gives them, stepped one after another.

    seen: (lanes, 2) float32, the first observations
    """

    def __init__(self, seed: int, lanes: int, skip: int):
        """Reset all lanes."""
        import gymnasium

        self._seeds, self._skip = _Seeds(seed, lanes), skip
        self._cars = [gymnasium.make(DISCRETE.id) for _ in range(lanes)]
        self.seen = np.stack([self._reset(lane) for lane in range(lanes)])

    def _reset(self, lane: int) -> np.ndarray:
        return self._cars[lane].reset(seed=self._seeds.next(lane))[0]

    def step(self, actions: np.ndarray) -> Step:
        """Let each action last for `skip` steps, or until its episode ends."""
        rows = []
        for lane, action in enumerate(actions.tolist()):
            total, lasted = 0.0, 0
            for _ in range(self._skip):
                after, reward, terminated, truncated, _ = self._cars[lane].step(action)
                total, lasted = total + reward, lasted + 1
                if terminated or truncated:
                    break
            seen = self._reset(lane) if terminated or truncated else after
            rows.append((lasted, total, terminated, truncated, after, seen))
        *columns, after, seen = zip(*rows, strict=True)
        lasted, *others = map(np.array, columns)
        return Step(int(lasted.sum()), lasted, *others, np.stack(after), np.stack(seen))


class Lanes:
    """The cars of physics, all stepped at once.

    reached: (lanes,) float64, the positions of the last step's `after`
    """

    def __init__(self, seed: int, lanes: int, skip: int):
        """Reset all lanes."""
        self._seeds, self._skip = _Seeds(seed, lanes), skip
        self._state = reset(np.array([self._seeds.next(lane) for lane in range(lanes)]))
        self._steps = np.zeros(lanes, np.int64)
        self.seen = self._state.observations()

    @property
    def positions(self) -> np.ndarray:
        """Where the cars are, (lanes,) float64: what `seen` rounds."""
        return self._state.positions

    def step(self, actions: np.ndarray) -> Step:
        """Let each action last for `skip` steps, or until its episode ends."""
        lanes = len(actions)
        positions, velocities = self._state.positions.copy(), self._state.velocities.copy()
        rewards, terminated = np.zeros(lanes), np.zeros(lanes, bool)
        active, lasted = np.arange(lanes), np.zeros(lanes, np.int64)
        for _ in range(self._skip):
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
        after = State(positions, velocities).observations()
        for lane in np.flatnonzero(terminated | truncated):
            begun = reset(np.array([self._seeds.next(int(lane))]))
            positions[lane], velocities[lane] = begun.positions[0], begun.velocities[0]
            self._steps[lane] = 0
        self._state = State(positions, velocities)
        self.seen = self._state.observations()
        frames = int(lasted.sum())
        return Step(frames, lasted, rewards, terminated, truncated, after, self.seen)
