"""A player: the process of a parallel training that plays, and writes its steps into a ring.

It waits while the ring is full or the trainer has it rest, and plays by the latest weights that
were published. It evaluates the network with NumPy, so that it needs no PyTorch: for some lanes
that takes a fraction of the time of PyTorch's calls, and it starts in a fraction of the memory.
How it is started and ended stands in player_process.
"""

import contextlib
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from goalreel.policies.network import Network
from goalreel.training.dqn.playing import Played, Player
from goalreel.training.dqn.settings import Settings
from goalreel.training.shared_memory import blocks
from goalreel.training.shared_memory.blocks import Fields
from goalreel.training.shared_memory.child_process import parent_is_there
from goalreel.training.shared_memory.ring import Ring
from goalreel.training.shared_memory.weights import AbandonedError, SharedWeights

CONTROL: Fields = dict.fromkeys(("ready", "playing"), ("<i8", (1,)))
"""ready: written by the player once its environments are reset; playing: by the trainer."""
PAUSE = 0.0002  # seconds between two looks at what one waits for
_FRAMES_AHEAD = 64  # so old may weights be that an action is chosen by, beside those just learned


def step_fields(lanes: int) -> Fields:
    """Return the fields of an item of the ring: a step of all lanes, and what it was played by."""
    return {
        **{"seen": ("<f4", (lanes, 2)), "actions": ("<i1", (lanes,)), "epsilon": ("<f8", ())},
        **{"frames": ("<i8", ()), "lasted": ("<i8", (lanes,)), "rewards": ("<f8", (lanes,))},
        **{"terminated": ("|b1", (lanes,)), "truncated": ("|b1", (lanes,))},
        **{"after": ("<f4", (lanes, 2)), "next": ("<f4", (lanes, 2))},
    }


def capacity_of(settings: Settings) -> int:
    """Return how many steps the ring holds: what the player may be ahead, and no less than two."""
    return max(2, _FRAMES_AHEAD // (settings.lanes * settings.skip))


@dataclass(frozen=True)
class Assignment:
    """What a player is told, as JSON.

    weights: the fields of the shared weights; fds: descriptors of "steps", "control" and "weights"
    """

    settings: Settings
    seed: int
    weights: Mapping
    fds: Mapping[str, int]

    def to_json(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> "Assignment":
        """Return what JSON tells."""
        told = json.loads(text)
        settings = Settings(**{**told["settings"], "hidden": tuple(told["settings"]["hidden"])})
        return cls(settings, told["seed"], blocks.fields_of_json(told["weights"]), told["fds"])


class Latest:
    """The network of the latest weights that were published.

    Raises weights.AbandonedError if the trainer ended while it wrote them.
    """

    def __init__(self, weights: SharedWeights):
        """Take the first."""
        self._weights = weights
        self._take()

    def _take(self) -> None:
        self._version, weights = self._weights.read(parent_is_there)
        self._network = Network.of(weights, np.float32)

    def values(self, seen: np.ndarray) -> np.ndarray:
        """Return the values of actions, (n, 3) float32, for (n, 2) float32 observations."""
        if self._weights.version != self._version:
            self._take()
        return self._network.values(seen)


def write(ring: Ring, played: Played) -> None:
    """Put a step into a ring that has room."""
    step = played.step
    row = {
        **{"seen": played.seen, "actions": played.actions, "epsilon": played.epsilon},
        **{"frames": step.frames, "lasted": step.lasted, "rewards": step.rewards},
        **{"terminated": step.terminated, "truncated": step.truncated},
        **{"after": step.after, "next": step.seen},
    }
    for name, place in ring.space(1).items():
        place[0] = row[name]
    ring.commit(1)


def main(argv: list[str]) -> None:
    """Play until the trainer is gone."""
    with contextlib.suppress(AbandonedError):
        play(Assignment.of(argv[0]))


def play(told: Assignment) -> None:
    """Play until the trainer is gone. Raises AbandonedError if it ended while it wrote weights."""
    settings, fds = told.settings, told.fds
    ring = Ring(step_fields(settings.lanes), capacity_of(settings), fds["steps"])
    control = blocks.arrays(fds["control"], CONTROL)
    latest = Latest(SharedWeights(told.weights, fds["weights"]))
    dice = np.random.default_rng([told.seed, 1])  # the trainer's has the seed alone
    player = Player(settings, told.seed, latest.values, dice)
    control["ready"][0] = 1
    while True:
        # A trainer that is gone takes nothing from the ring, so it is found out here in the end.
        while len(ring) == ring.capacity or not control["playing"][0]:
            if not parent_is_there():
                return
            time.sleep(PAUSE)
        write(ring, player.next())


if __name__ == "__main__":
    main(sys.argv[1:])
