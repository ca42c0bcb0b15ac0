"""The player of a parallel training: a process that plays and writes its steps into a ring.

It waits while the ring is full or the trainer has it rest, and plays by the latest published
weights. It evaluates the network with NumPy, without PyTorch: for a few lanes that takes a fraction
of the time of PyTorch's calls, and it starts in a fraction of the memory.
"""

import contextlib
import json
import sys
import time

import numpy as np

from goalreel.policies.network import Network
from goalreel.training.dqn.playing import Played, Player
from goalreel.training.dqn.settings import Settings
from goalreel.training.shared_memory import blocks
from goalreel.training.shared_memory.blocks import Fields
from goalreel.training.shared_memory.child_process import parent_is_alive
from goalreel.training.shared_memory.ring import Ring
from goalreel.training.shared_memory.weights import AbandonedError, Latest, SharedWeights

CONTROL: Fields = dict.fromkeys(("ready", "playing"), ("<i8", (1,)))
"""ready: written by the player once its environments are reset; playing: by the trainer."""
PAUSE = 0.0002  # seconds between two checks of a condition that is waited for
_FRAMES_AHEAD = 64  # the most by which the player is ahead of the learner


def step_fields(lanes: int) -> Fields:
    """Return the fields of an item of the ring: a step of all lanes."""
    return {
        **{"obs": ("<f4", (lanes, 2)), "actions": ("<i1", (lanes,)), "epsilon": ("<f8", ())},
        **{"frames": ("<i8", ()), "lasted": ("<i8", (lanes,)), "rewards": ("<f8", (lanes,))},
        **{"terminated": ("|b1", (lanes,)), "truncated": ("|b1", (lanes,))},
        **{"next_obs": ("<f4", (lanes, 2)), "reset_obs": ("<f4", (lanes, 2))},
    }


def capacity_of(settings: Settings) -> int:
    """Return how many steps the ring holds: those that the player may be ahead, at least two."""
    return max(2, _FRAMES_AHEAD // (settings.lanes * settings.frame_skip))


def write(ring: Ring, played: Played) -> None:
    """Put a step into a ring that has room."""
    step = vars(played.step)
    row = {**vars(played), **step, "obs": played.obs, "reset_obs": step["obs"]}
    for name, place in ring.space(1).items():
        place[0] = row[name]
    ring.commit(1)


def play(text: str) -> None:
    """Play until the trainer has ended. Raises AbandonedError if it ended while writing weights.

    `text` is JSON: settings, seed, fields of the weights, and the descriptors of the memory.
    """
    values, seed, weights, fds = json.loads(text)
    settings = Settings(**values | {"hidden": tuple(values["hidden"])})
    ring = Ring(step_fields(settings.lanes), capacity_of(settings), fds["steps"])
    control = blocks.arrays(fds["control"], CONTROL)
    shared = SharedWeights(blocks.fields_of_json(weights), fds["weights"])
    latest = Latest(shared, lambda weights: Network.of(weights, np.float32), parent_is_alive)
    rng = np.random.default_rng([seed, 1])  # the trainer's has the seed alone
    latest.get()  # a set that is of no use ends the process before it is ready
    player = Player(settings, seed, lambda obs: latest.get().values(obs), rng)
    control["ready"][0] = 1
    while True:
        # The ring of a trainer that has ended stays full, so the player always gets to this check.
        while len(ring) == ring.capacity or not control["playing"][0]:
            if not parent_is_alive():
                return
            time.sleep(PAUSE)
        write(ring, player.next())


if __name__ == "__main__":
    with contextlib.suppress(AbandonedError):
        play(sys.argv[1])
