"""A collector: a process that plays N environments and writes its steps into a ring.

It takes no lock and waits for nobody but a full ring, where it is told to block. It imports NumPy
and the game alone, so that the interpreter may be another than the trainer's, and ends when the
trainer has ended (child). How collectors are started and watched stands in collectors.
"""

import contextlib
import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.training.games.lanes import PixelLanes, make_lanes
from goalreel.training.games.settings import GameSettings
from goalreel.training.pixels.frame_replay_buffer import step_fields
from goalreel.training.pixels.numpy_network import Actor
from goalreel.training.shared_memory import blocks, child_process
from goalreel.training.shared_memory.blocks import Fields
from goalreel.training.shared_memory.ring import Ring
from goalreel.training.shared_memory.weights import AbandonedError, SharedWeights

REFUSED = 78  # exit status of bad input, which no new start can mend; EX_CONFIG of sysexits.h
END = -1  # the action of a row that holds an episode's last frame alone, and is no step
_PAUSE = 0.0005  # seconds between two looks at a full ring

CONTROL: Fields = {"epsilon": ("<f8", (1,))}
"""What the trainer writes for all collectors."""
COUNTERS: Fields = dict.fromkeys(("frames", "steps", "drops", "blocked"), ("<i8", (1,)))
"""What a collector writes: steps of environments, its own steps, rows that a full ring did not
take, and nanoseconds that it waited for room. A collector started anew counts on."""
EPISODE: Fields = {"return": ("<f8", ()), "distance": ("<f8", ()), "frames": ("<i8", ())}
"""A game that has ended; see games.Episode."""


@dataclass(frozen=True)
class Assignment:
    """What a collector is told, as JSON.

    seed: a sequence of whole numbers that no other start has; stack: frames that the network sees
    capacity, episodes: of its rings; block: wait when the ring is full, rather than drop
    weights: fields of the shared weights; fds: descriptors of "steps", "episodes", "counters",
    "control" and "weights"
    """

    game: Mapping
    seed: list[int]
    lanes: int
    shape: tuple[int, int]
    stack: int
    capacity: int
    episodes: int
    block: bool
    weights: Mapping
    fds: Mapping[str, int]

    def to_json(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> "Assignment":
        """Return what JSON tells."""
        told = json.loads(text)
        weights = blocks.fields_of_json(told["weights"])
        return cls(**{**told, "weights": weights, "shape": tuple(told["shape"])})


class Collector:
    """The environments of a collector, and what it writes to."""

    def __init__(self, told: Assignment, lanes: PixelLanes, alive: Callable[[], bool]):
        """Join the shared memory.

        alive: tells whether the trainer still is; a wait for room, or for weights, ends with it.
        """
        self._steps = Ring(step_fields(told.shape), told.capacity, told.fds["steps"])
        self._episodes = Ring(EPISODE, told.episodes, told.fds["episodes"])
        self._counters = blocks.arrays(told.fds["counters"], COUNTERS)
        self._epsilon = blocks.arrays(told.fds["control"], CONTROL)["epsilon"]
        self._weights = SharedWeights(told.weights, told.fds["weights"])
        self._version, self._actor = 0, None
        self._lanes, self._alive, self._block = lanes, alive, told.block
        self._dice = np.random.default_rng(told.seed)
        self._numbers = np.arange(told.lanes, dtype=np.int32)
        self._ages = np.zeros(told.lanes, np.int32)
        self._stacks = np.repeat(lanes.seen[:, None], told.stack, axis=1)

    def step(self) -> None:
        """Act in all environments once, and hand over what came of it.

        Raises AbandonedError if the trainer ended while it wrote weights.
        """
        actions = self._choose()
        step = self._lanes.step(actions)
        ended = step.terminated | step.truncated
        rows = {
            **{"frame": self._stacks[:, -1], "env": self._numbers, "action": actions},
            **{"reward": step.rewards, "age": self._ages, "terminated": step.terminated},
        }
        kept = self._write(rows)
        # What follows a dropped step is the first of its kind, as the replay is told.
        self._ages = np.where(self._numbers < kept, self._ages + 1, 0).astype(np.int32)
        (cut,) = np.nonzero(step.truncated & ~step.terminated)
        if len(cut):
            self._write(self._last_frames(cut, step.after))
        self._ages[ended] = 0
        self._see(ended)
        self._counters["frames"][0] += step.frames
        self._counters["steps"][0] += len(actions)
        for episode in step.ended:
            self._episodes.push(
                {
                    "return": [episode.return_],
                    "distance": [episode.distance],
                    "frames": [episode.frames],
                }
            )

    def _choose(self) -> np.ndarray:
        """Return the actions, (lanes,) int16, each random with probability epsilon."""
        lanes = len(self._numbers)
        random = self._dice.random(lanes) < self._epsilon[0]
        actions = self._dice.integers(self._lanes.actions, size=lanes, dtype=np.int16)
        if not random.all():
            values = self._latest().values(self._stacks[~random])
            actions[~random] = values.argmax(axis=1)
        return actions

    def _latest(self) -> Actor:
        """Return the network of the latest weights."""
        if self._actor is None or self._weights.version != self._version:
            self._version, weights = self._weights.read(self._alive)
            self._actor = Actor.of(weights)
        return self._actor

    def _last_frames(self, cut: np.ndarray, after: np.ndarray) -> dict[str, np.ndarray]:
        """Return the rows of what the last steps of episodes that were cut off led to."""
        none = np.zeros(len(cut))
        return {
            **{"frame": after[cut], "env": self._numbers[cut], "action": none + END},
            **{"reward": none, "age": self._ages[cut], "terminated": none},
        }

    def _see(self, ended: np.ndarray) -> None:
        """Take what is seen now into the stacks, which begin anew where an episode ended."""
        self._stacks[:, :-1] = self._stacks[:, 1:]
        self._stacks[:, -1] = self._lanes.seen
        if ended.any():
            self._stacks[ended] = self._lanes.seen[ended][:, None]

    def _write(self, rows: Mapping[str, np.ndarray]) -> int:
        """Write rows into the ring; return how many of them the ring took."""
        total = len(rows["env"])
        done = self._steps.push(rows)
        if done < total and self._block:
            begun = time.monotonic_ns()
            while done < total and self._alive():
                time.sleep(_PAUSE)
                done += self._steps.push({name: row[done:] for name, row in rows.items()})
                now = time.monotonic_ns()
                self._counters["blocked"][0] += now - begun
                begun = now
        elif done < total:
            self._counters["drops"][0] += total - done
        return done


def main(argv: list[str]) -> None:
    """Play until the trainer is gone; or, for `actions`, tell how many a game has."""
    what, text = argv
    try:
        if what == "actions":
            lanes = make_lanes(GameSettings.of(json.loads(text)), 0, 1)
            print(lanes.actions)
        else:
            told = Assignment.of(text)
            seed = int(np.random.SeedSequence(told.seed).generate_state(1)[0])
            lanes = make_lanes(GameSettings.of(told.game), seed, told.lanes)
            collector = Collector(told, lanes, child_process.parent_is_there)
            with contextlib.suppress(AbandonedError):
                while child_process.parent_is_there():
                    collector.step()
        lanes.close()
    except GoalreelError as error:
        print(error, file=sys.stderr)
        sys.exit(REFUSED)


if __name__ == "__main__":
    main(sys.argv[1:])
