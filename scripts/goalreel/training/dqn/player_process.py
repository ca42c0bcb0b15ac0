"""A player in a process of its own: it puts steps into a ring, and plays by the latest weights.

It waits while the ring is full. It evaluates the network with NumPy, without PyTorch: for a few
environments that takes a fraction of the time of PyTorch's calls, and it starts in a fraction of
the memory. The memory that both sides share has no name, so none is left behind, however they end.
"""

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.policies.network import Network
from goalreel.training.dqn.playing import Batch, Played, Player
from goalreel.training.dqn.settings import Settings
from goalreel.training.shared_memory import blocks, child_process
from goalreel.training.shared_memory.ring import Ring
from goalreel.training.shared_memory.weights import (
    AbandonedError,
    Latest,
    SharedWeights,
    fields_of,
)

_PAUSE = 0.0002  # seconds between two looks at a ring that is full or empty


def ring_of(settings: Settings, fd: int | None = None) -> Ring:
    """Return the ring of a training's steps, which holds those of two gradient steps."""
    num_envs = settings.num_envs
    fields = {
        **{"obs": ("<f4", (num_envs, 2)), "actions": ("<i8", (num_envs,))},
        "rewards": ("<f4", (num_envs,)),
        **{"next_obs": ("<f4", (num_envs, 2)), "discounts": ("<f4", (num_envs,))},
        **{"frames": ("<i8", ()), "over": ("|b1", (num_envs,)), "epsilon": ("<f8", ())},
    }
    return Ring(fields, 2 * settings.learn_every, fd)


class PlayerProcess:
    """The learner's side: starts the process, takes its steps, ends it.

    Attributes:
        ring: the steps that wait.
        process: the player.
    """

    def __init__(self, settings: Settings, seed: int, weights: Mapping[str, np.ndarray]):
        """Start to play by the first weights."""
        self.ring, fields = ring_of(settings), fields_of(weights)
        self._weights = SharedWeights(fields)
        self._weights.write(weights)
        self._fds = (self.ring.fd, self._weights.fd)
        text = json.dumps([asdict(settings), seed, fields, self._fds])
        self.process = child_process.start(sys.executable, __name__, text, pass_fds=self._fds)

    def next(self) -> Played:
        """Return the next step, waiting for it. Raises GoalreelError if the player has ended."""
        while not len(self.ring):
            status = self.process.poll()
            if status is not None and not len(self.ring):
                raise GoalreelError(
                    f"the process that plays has ended ({child_process.meaning(status)}); its "
                    f"error message, if any, is above"
                )
            time.sleep(_PAUSE)
        row = {name: items[0].copy() for name, items in self.ring.items(1).items()}
        self.ring.release(1)
        frames, over, epsilon = (row.pop(name) for name in ("frames", "over", "epsilon"))
        return Played(Batch(**row), int(frames), over, float(epsilon))

    def learned(self, weights: Callable[[], dict[str, np.ndarray]]) -> None:
        """Publish new weights."""
        self._weights.write(weights())

    def close(self) -> None:
        """End the player, and free the memory."""
        child_process.end([self.process])
        for fd in self._fds:
            os.close(fd)


def play(text: str) -> None:
    """Play until the trainer has ended. Raises AbandonedError if it ended while writing weights.

    `text` is JSON: settings, seed, fields of the weights, and the descriptors of the memory.
    """
    values, seed, weights, (ring_fd, weights_fd) = json.loads(text)
    settings = Settings(**values | {"hidden": tuple(values["hidden"])})
    ring, alive = ring_of(settings, ring_fd), child_process.parent_is_alive
    shared = SharedWeights(blocks.fields_of_json(weights), weights_fd)
    latest = Latest(shared, lambda weights: Network.of(weights, np.float32), alive)
    rng = np.random.default_rng([seed, 1])  # the trainer's has the seed alone
    player = Player(settings, seed, lambda obs: latest.get().values(obs), rng)
    while True:
        # The ring of a trainer that has ended stays full, so the player always gets to this check.
        while len(ring) == ring.capacity:
            if not alive():
                return
            time.sleep(_PAUSE)
        played = player.next()
        row = vars(played) | vars(played.batch)
        for name, place in ring.space(1).items():
            place[0] = row[name]
        ring.commit(1)


if __name__ == "__main__":
    with contextlib.suppress(AbandonedError):
        play(sys.argv[1])
