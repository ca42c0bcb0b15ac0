"""The programs of the processes that play: collectors, evaluations, the number of actions.

A collector plays N environments and writes the steps into a ring. It takes no lock, and waits only
if the ring is full. These processes need only NumPy and the game, so that their interpreter may
differ from the trainer's. PyTorch would save 0.5 ms per step, but takes seconds to import. The
processes end when the trainer ends.
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

END = -1  # the action of a row that is no step, but the last frame of an episode
# Seconds between two tries to write into a full ring. With 0.5 ms, a waiting collector took a tenth
# of the CPU time of the training.
_PAUSE = 0.002
_SEED = 10_000  # of evaluations; a training uses hashes of its own seed
_NICE = 5  # evaluations have a lower priority than the training

STATE: Fields = {"epsilon": ("<f8", (1,)), "blocked": ("<i8", (1024,))}
"""The share of random actions, which the trainer writes, and the nanoseconds that each collector
(at most 1,024) waited for space, which the collector writes."""
EPISODE: Fields = {"return": ("<f8", ()), "distance": ("<f8", ())}
"""A finished game, as pixel_envs.EndedGame."""
EPISODES = 1024  # capacity of a collector's ring of finished games


def step_fields(shape: tuple[int, int] = (SIDE, SIDE)) -> Fields:
    """Return the fields of a step in rings and replay buffer, for frames of a shape (H, W)."""
    return {
        "frame": ("u1", shape),
        "env": ("<i4", ()),  # index of the environment
        "action": ("<i2", ()),
        "reward": ("<f4", ()),
        "episode_step": ("<i4", ()),  # steps since the reset
        "terminated": ("u1", ()),
    }


def next_stacks(stacks: np.ndarray, obs: np.ndarray, ended: np.ndarray) -> np.ndarray:
    """Return the frame stacks, (num_envs, stack, H, W), after a step; a first frame is repeated.

    obs: (num_envs, H, W), the new frames. ended: (num_envs,) bool, whether each episode ended.
    """
    after = np.concatenate([stacks[:, 1:], obs[:, None]], axis=1)
    after[ended] = obs[ended][:, None]
    return after


class Collector:
    """The environments of a collector and its shared memory."""

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
        """Open the shared memory, given its file descriptors by purpose.

        `alive` returns whether to go on waiting for space or weights. `seed` is unique to this
        collector and session, `number` is its index, and `capacity` that of its ring in steps.
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
        """Step all environments, and write the step into the ring.

        Raises AbandonedError if the trainer ended while it wrote weights.
        """
        actions = self._choose()
        step = self._envs.step(actions)
        ended = step.terminated | step.truncated
        rows = {"frame": self._stacks[:, -1], "env": self._numbers, "action": actions}
        rows |= {"reward": step.rewards, "episode_step": self._episode_steps}
        rows |= {"terminated": step.terminated}
        self._write(rows)
        self._episode_steps += 1
        (cut,) = np.nonzero(step.truncated & ~step.terminated)
        if len(cut):  # the last frames of truncated episodes, which are no steps
            rest = {name: column[cut] for name, column in rows.items()}
            zeros = np.zeros(len(cut))
            rest |= {"frame": step.next_obs[cut], "action": zeros + END, "reward": zeros}
            self._write(rest)
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

    def _write(self, rows: Mapping[str, np.ndarray]) -> None:
        """Write rows into the ring, and wait for space while the trainer is alive."""
        start, done = time.monotonic_ns(), self._steps.push(rows)
        if done == len(rows["env"]):
            return
        while done < len(rows["env"]) and self._alive():
            time.sleep(_PAUSE)
            done += self._steps.push({name: row[done:] for name, row in rows.items()})
        self._blocked[0] += time.monotonic_ns() - start


def actions(game: Mapping) -> None:
    """Print the number of actions of a game."""
    with contextlib.closing(make_envs(GameSettings(**game), 0, 1)) as envs:
        print(envs.actions)


def collect(game: Mapping, num_envs: int, seed: Sequence[int], **others) -> None:
    """Play until the trainer ends; others: arguments of Collector."""
    own = int(np.random.SeedSequence(seed).generate_state(1)[0])
    envs = make_envs(GameSettings(**game), own, num_envs)
    collector = Collector(envs, child_process.parent_is_alive, seed, **others)
    with contextlib.closing(envs), contextlib.suppress(AbandonedError):
        while child_process.parent_is_alive():
            collector.step()


def evaluate(game: Mapping, stack: int, games: int, weights: Fields, fd: int) -> None:
    """Play greedy games from fixed seeds, one per environment, and print their returns.

    `weights` has the fields of the weights in the memory of the file descriptor.
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
    job = {"actions": actions, "collect": collect, "evaluate": evaluate}[sys.argv[1]]
    try:
        job(**json.loads(sys.argv[2]))
    except GoalreelError as error:
        print(error, file=sys.stderr)
        sys.exit(child_process.BAD_INPUT)
