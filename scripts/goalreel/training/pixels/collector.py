"""A collector: a process that plays N environments and writes its steps into a ring.

It takes no lock, and waits only for a full ring, in the mode `block`. It needs NumPy and the game
alone, so that the interpreter may be another than the trainer's; where that has PyTorch, PyTorch
plays. It ends when the trainer has ended.
"""

import contextlib
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.policies.pixel_network import Actor
from goalreel.training.games.make_envs import make_envs
from goalreel.training.games.pixel_envs import PixelEnvs
from goalreel.training.games.settings import GameSettings
from goalreel.training.shared_memory import blocks, child_process
from goalreel.training.shared_memory.blocks import Fields
from goalreel.training.shared_memory.ring import Ring
from goalreel.training.shared_memory.weights import AbandonedError, Latest, SharedWeights

REFUSED = 78  # exit status of bad input, which no new start can mend; EX_CONFIG of sysexits.h
END = -1  # the action of a row that holds an episode's last frame alone, and is no step
_PAUSE = 0.002  # seconds between two tries to write into a full ring; with 0.5 ms, a collector
# that waits for the learner took a tenth of the whole training's CPU time

CONTROL: Fields = {"epsilon": ("<f8", (1,))}
"""Written by the trainer for all collectors."""
COUNTERS: Fields = dict.fromkeys(("frames", "steps", "drops", "blocked"), ("<i8", (1,)))
"""Written by a collector: steps of environments, its own steps, rows that a full ring did not
take, and nanoseconds that it waited for room. A collector that is restarted counts on."""
EPISODE: Fields = {"return": ("<f8", ()), "distance": ("<f8", ()), "frames": ("<i8", ())}
"""A game that has ended; see pixel_envs.Episode."""
EPISODES = 1024  # that a collector's second ring holds


def step_fields(shape: tuple[int, int]) -> Fields:
    """Return the fields of a step, as rings and replay hold them, for frames of a shape (H, W)."""
    return {
        "frame": ("u1", shape),
        "env": ("<i4", ()),  # the environment's number
        "action": ("<i2", ()),
        "reward": ("<f4", ()),
        "episode_step": ("<i4", ()),  # steps since its reset, or since steps were dropped
        "terminated": ("u1", ()),
    }


def actor_of(weights: Mapping[str, np.ndarray]):
    """Return who plays by published weights: PyTorch where it is, which is faster, else NumPy."""
    if importlib.util.find_spec("torch") is None:
        return Actor.of(weights)
    from goalreel.training.pixels.network import TorchActor

    return TorchActor(weights)


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


@dataclass(frozen=True)
class Assignment:
    """What a collector gets on its command line, as JSON.

    The trainer leaves `weights` and `fds` open; `seed` is the session's then.
    """

    game: Mapping  # GameSettings as a dict
    seed: tuple[int, ...]  # which no other start has
    num_envs: int
    shape: tuple[int, int]  # of a frame
    stack: int  # frames of an observation
    capacity: int  # steps of its ring
    block: bool  # wait when the ring is full, rather than drop
    weights: Mapping = field(default_factory=dict)  # fields of the shared weights
    fds: Mapping[str, int] = field(default_factory=dict)  # of the memory, by its purpose

    def to_json(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> "Assignment":
        """Return the assignment of such JSON."""
        values = json.loads(text)
        weights = blocks.fields_of_json(values["weights"])
        return cls(**{**values, "weights": weights, "shape": tuple(values["shape"])})


class Collector:
    """The environments of a collector, and what it writes to."""

    def __init__(self, assignment: Assignment, envs: PixelEnvs, alive: Callable[[], bool]):
        """Join the shared memory; waits for room, or for weights, end when `alive` is false."""
        fds = assignment.fds
        self._steps = Ring(step_fields(assignment.shape), assignment.capacity, fds["steps"])
        self._episodes = Ring(EPISODE, EPISODES, fds["episodes"])
        self._counters = blocks.arrays(fds["counters"], COUNTERS)
        self._epsilon = blocks.arrays(fds["control"], CONTROL)["epsilon"]
        weights = SharedWeights(assignment.weights, fds["weights"])
        self._actor = Latest(weights, actor_of, alive)
        self._envs, self._alive, self._block = envs, alive, assignment.block
        self._rng = np.random.default_rng(assignment.seed)
        self._numbers = np.arange(assignment.num_envs, dtype=np.int32)
        self._episode_steps = np.zeros(assignment.num_envs, np.int32)
        self._stacks = np.repeat(envs.obs[:, None], assignment.stack, axis=1)

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
        written = self._write(rows)
        # What follows a dropped step has step 0, so that nothing is stacked across the gap.
        self._episode_steps = np.where(self._numbers < written, self._episode_steps + 1, 0).astype(
            np.int32
        )
        (cut,) = np.nonzero(step.truncated & ~step.terminated)
        if len(cut):
            self._write(self._last_frames(cut, step.next_obs))
        self._episode_steps[ended] = 0
        self._stacks = next_stacks(self._stacks, self._envs.obs, ended)
        self._counters["frames"][0] += step.frames
        self._counters["steps"][0] += len(actions)
        for episode in step.ended:
            values = (episode.return_, episode.distance, episode.frames)
            self._episodes.push({name: [v] for name, v in zip(EPISODE, values, strict=True)})

    def _choose(self) -> np.ndarray:
        """Return the actions, (num_envs,) int16, each random with probability epsilon."""
        num_envs = len(self._numbers)
        random = self._rng.random(num_envs) < self._epsilon[0]
        actions = self._rng.integers(self._envs.actions, size=num_envs, dtype=np.int16)
        if not random.all():
            values = self._actor.get().values(self._stacks[~random])
            actions[~random] = values.argmax(axis=1)
        return actions

    def _last_frames(self, cut: np.ndarray, next_obs: np.ndarray) -> dict[str, np.ndarray]:
        """Return the rows of the last frames of episodes that were truncated."""
        zeros = np.zeros(len(cut))
        return {
            **{"frame": next_obs[cut], "env": self._numbers[cut], "action": zeros + END},
            **{"reward": zeros, "episode_step": self._episode_steps[cut], "terminated": zeros},
        }

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
    """Play until the trainer has ended; or, for `actions`, print how many a game has."""
    what, text = argv
    try:
        if what == "actions":
            envs = make_envs(GameSettings(**json.loads(text)), 0, 1)
            print(envs.actions)
        else:
            assignment = Assignment.of(text)
            seed = int(np.random.SeedSequence(assignment.seed).generate_state(1)[0])
            envs = make_envs(GameSettings(**assignment.game), seed, assignment.num_envs)
            collector = Collector(assignment, envs, child_process.parent_is_alive)
            with contextlib.suppress(AbandonedError):
                while child_process.parent_is_alive():
                    collector.step()
        envs.close()
    except GoalreelError as error:
        print(error, file=sys.stderr)
        sys.exit(REFUSED)


if __name__ == "__main__":
    main(sys.argv[1:])
