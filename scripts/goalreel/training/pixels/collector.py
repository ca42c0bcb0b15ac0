"""The processes that play: collectors, evaluations, and what asks how many actions a game has.

A collector plays N environments and writes its steps into a ring. It takes no lock, and waits only
for a full ring. These processes need NumPy and the game alone, so that the interpreter may be
another than the trainer's: PyTorch would save half a millisecond a step and take seconds to import.
They end when the trainer has ended.
"""

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.policies.pixel_network import SIDE, Actor
from goalreel.training.games.make_envs import make_envs
from goalreel.training.games.pixel_envs import PixelEnvs
from goalreel.training.games.settings import GameSettings
from goalreel.training.shared_memory import child_process
from goalreel.training.shared_memory.arrays import Fields, shared_arrays
from goalreel.training.shared_memory.ring import Ring
from goalreel.training.shared_memory.weights import AbandonedError, SharedWeights

END = -1  # the action of a row that holds an episode's last frame alone, and is no step
_PAUSE = 0.002  # seconds between two tries to write into a full ring; with 0.5 ms, a collector
# that waits for the learner took a tenth of the whole training's CPU time
_SEED = 10_000  # of the games of an evaluation; a training's own are hashes of its seed
_NICE = 5  # an evaluation gives way to the training

STATE: Fields = {"epsilon": ("<f8", (1,)), "blocked": ("<i8", (1024,))}
"""The share of random actions, which the trainer writes; the nanoseconds that each collector, of at
most 1,024, waited for room, which it writes."""
EPISODE: Fields = {"return": ("<f8", ()), "distance": ("<f8", ())}
"""A game that has ended; see pixel_envs.EndedGame."""
EPISODES = 1024  # that a collector's second ring holds


def step_fields(shape: tuple[int, int] = (SIDE, SIDE)) -> Fields:
    """Return the fields of a step, as rings and replay hold them, for frames of a shape (H, W)."""
    return {
        "frame": ("u1", shape),
        "env": ("<i4", ()),  # the environment's number
        "action": ("<i2", ()),
        "reward": ("<f4", ()),
        "episode_step": ("<i4", ()),  # steps since its reset
        "terminated": ("u1", ()),
    }


def next_stacks(stacks: np.ndarray, obs: np.ndarray, ended: np.ndarray) -> np.ndarray:
    """Return the stacks, (num_envs, stack, H, W), after a step; a first frame is repeated.

    Args:
        stacks: before the step.
        obs: (num_envs, H, W), what to act on next.
        ended: (num_envs,) bool, whose episodes ended.
    """
    after = np.concatenate([stacks[:, 1:], obs[:, None]], axis=1)
    after[ended] = obs[ended][:, None]
    return after


class Collector:
    """The environments of a collector, and what it writes to."""

    def __init__(
        self,
        envs: PixelEnvs,
        alive: Callable[[], bool],
        seed: Sequence[int],
        number: int,
        stack: int,
        capacity: int,
        weights: Fields,
        fds: Mapping[str, int],
    ):
        """Join the shared memory.

        Args:
            envs: what it plays.
            alive: waits for room, or for weights, end when this is false.
            seed: which no other collector and no other session has.
            number: of the collector.
            stack: frames of an observation.
            capacity: steps of its ring.
            weights: fields of the shared weights.
            fds: of the memory, by its purpose.
        """
        self._steps = Ring(step_fields(), capacity, fds["steps"])
        self._episodes = Ring(EPISODE, EPISODES, fds["episodes"])
        _, state = shared_arrays(STATE, fds["state"])
        self._epsilon, self._blocked = state["epsilon"], state["blocked"][number:]
        self._weights = SharedWeights(weights, fds["weights"])
        self._version, self._actor = -1, None
        self._envs, self._alive = envs, alive
        self._rng = np.random.default_rng(seed)
        self._numbers = np.arange(len(envs.obs), dtype=np.int32)
        self._episode_steps = np.zeros_like(self._numbers)
        self._stacks = np.repeat(envs.obs[:, None], stack, axis=1)

    def step(self) -> None:
        """Act in all environments once, and write the step into the ring.

        Raises AbandonedError if the trainer ended while it wrote weights.
        """
        actions = self._choose()
        step = self._envs.step(actions)
        ended = step.terminated | step.truncated
        rows = {
            **{"frame": self._stacks[:, -1], "env": self._numbers, "action": actions},
            **{
                "reward": step.rewards,
                "episode_step": self._episode_steps,
                "terminated": step.terminated,
            },
        }
        self._write(rows)
        self._episode_steps += 1
        (cut,) = np.nonzero(step.truncated & ~step.terminated)
        if len(cut):
            self._write(self._last_frames(cut, step.next_obs))
        self._episode_steps[ended] = 0
        self._stacks = next_stacks(self._stacks, self._envs.obs, ended)
        for episode in step.ended:
            self._episodes.push({"return": [episode.return_], "distance": [episode.distance]})

    def _choose(self) -> np.ndarray:
        """Return the actions, (num_envs,) int16, each random with probability epsilon."""
        num_envs = len(self._numbers)
        random = self._rng.random(num_envs) < self._epsilon[0]
        actions = self._rng.integers(self._envs.actions, size=num_envs, dtype=np.int16)
        if not random.all():
            if self._weights.version != self._version:
                self._version, weights = self._weights.read(self._alive)
                self._actor = Actor.of(weights)
            actions[~random] = self._actor.values(self._stacks[~random]).argmax(axis=1)
        return actions

    def _last_frames(self, cut: np.ndarray, next_obs: np.ndarray) -> dict[str, np.ndarray]:
        """Return the rows of the last frames of episodes that were truncated."""
        zeros = np.zeros(len(cut))
        return {
            **{"frame": next_obs[cut], "env": self._numbers[cut], "action": zeros + END},
            **{"reward": zeros, "episode_step": self._episode_steps[cut], "terminated": zeros},
        }

    def _write(self, rows: Mapping[str, np.ndarray]) -> None:
        """Write rows into the ring, waiting for room while the trainer is alive."""
        start, done = time.monotonic_ns(), self._steps.push(rows)
        if done == len(rows["env"]):
            return
        while done < len(rows["env"]) and self._alive():
            time.sleep(_PAUSE)
            done += self._steps.push({name: row[done:] for name, row in rows.items()})
        self._blocked[0] += time.monotonic_ns() - start


def actions(game: Mapping) -> None:
    """Print how many actions a game has."""
    with contextlib.closing(make_envs(GameSettings(**game), 0, 1)) as envs:
        print(envs.actions)


def collect(game: Mapping, num_envs: int, seed: Sequence[int], **others) -> None:
    """Play until the trainer has ended; others: of Collector."""
    own = int(np.random.SeedSequence(seed).generate_state(1)[0])
    envs = make_envs(GameSettings(**game), own, num_envs)
    collector = Collector(envs, child_process.parent_is_alive, seed, **others)
    with contextlib.closing(envs), contextlib.suppress(AbandonedError):
        while child_process.parent_is_alive():
            collector.step()


def evaluate(game: Mapping, stack: int, games: int, weights: Fields, fd: int) -> None:
    """Play greedy games on fixed seeds by the weights in a descriptor's memory; print the returns.

    The returns are those of the first game of each of `games` environments.
    """
    os.nice(_NICE)
    actor = Actor.of(shared_arrays(weights, fd)[1])
    returns: dict[int, float] = {}
    with contextlib.closing(make_envs(GameSettings(**game), _SEED, games)) as envs:
        stacks = np.repeat(envs.obs[:, None], stack, axis=1)
        while len(returns) < games and child_process.parent_is_alive():
            step = envs.step(actor.values(stacks).argmax(axis=1).astype(np.int16))
            stacks = next_stacks(stacks, envs.obs, step.terminated | step.truncated)
            for episode in step.ended:
                returns.setdefault(episode.index, episode.return_)
    print(json.dumps([returns[index] for index in sorted(returns)]))


if __name__ == "__main__":
    try:
        {"actions": actions, "collect": collect, "evaluate": evaluate}[sys.argv[1]](
            **json.loads(sys.argv[2])
        )
    except GoalreelError as error:
        print(error, file=sys.stderr)
        sys.exit(child_process.BAD_INPUT)
