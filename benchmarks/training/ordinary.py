"""The ordinary design of collectors, for comparison: processes that share one locked queue.

Each transition is pickled and put into a `multiprocessing.Queue` by itself, as two stacks of frames
or, where that is what is tried, as one frame. Weights come by a queue too, or by shared memory. All
else is what goalreel's collectors do: the same environments, and the same network.
"""

import multiprocessing as mp
import queue
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.reduction import DupFd

import numpy as np
import torch

import benchmarks.harness  # noqa: F401 - which tells Python where goalreel is

# isort: split
from goalreel.policies.pixel_network import SIDE
from goalreel.training.games.make_lanes import make_lanes
from goalreel.training.games.settings import GameSettings
from goalreel.training.pixels.collector import actor_of, next_stacks, step_fields
from goalreel.training.pixels.frame_replay_buffer import Batch, FrameReplay
from goalreel.training.shared_memory.weights import SharedWeights, fields_of

STACK = 4
_PATIENCE = 0.01  # seconds: of two stacks a pipe holds one, and another is behind it
_SPAWN = mp.get_context("spawn")


@dataclass(frozen=True)
class Part:
    """What a player plays and sends."""

    game: str
    number: int  # of the player
    lanes: int
    epsilon: float
    frames_once: bool


class Players:
    """Player processes, and the queue of their transitions; a context manager."""

    def __init__(self, parts: list[Part], waiting: int, weights: Mapping, shared: bool):
        """Take how many transitions may wait, and whether weights come by shared memory."""
        self._queue = _SPAWN.Queue(waiting)
        self._given = [_SPAWN.Queue(1) for _ in parts]
        for given in self._given:  # weights that nobody takes any more are not waited for at exit
            given.cancel_join_thread()
        self._shared = SharedWeights(fields_of(weights)) if shared else None
        self.publish(weights)
        fields = fields_of(weights) if shared else None
        sources = [DupFd(self._shared.fd) for _ in parts] if shared else self._given
        self._processes = [
            _SPAWN.Process(target=play, args=(part, self._queue, source, fields), daemon=True)
            for part, source in zip(parts, sources, strict=True)
        ]

    def __enter__(self) -> "Players":
        """Start them."""
        for process in self._processes:
            process.start()
        return self

    def __exit__(self, *_) -> None:
        """End them."""
        for process in self._processes:
            process.kill()
            process.join()

    def check(self) -> None:
        """Raise ChildProcessError for a player that ended by itself."""
        for number, process in enumerate(self._processes):
            if process.exitcode is not None:
                raise ChildProcessError(f"player {number} ended: exit status {process.exitcode}")

    def publish(self, weights: Mapping) -> None:
        """Give all players new weights, unless they have not taken the last."""
        if self._shared is not None:
            self._shared.write(weights)
            return
        for given in self._given:
            try:
                given.put_nowait(weights)
            except queue.Full:
                continue

    def take(self, most: int) -> list[tuple]:
        """Return up to `most` transitions, taken one at a time."""
        taken = []
        while len(taken) < most:
            try:
                taken.append(self._queue.get(timeout=_PATIENCE))
            except queue.Empty:
                break
        return taken


def play(part: Part, sent, given, fields) -> None:
    """Play for ever; the main function of a player's process."""
    torch.set_num_threads(1)
    lanes = make_lanes(GameSettings(part.game), part.number, part.lanes)
    weights = SharedWeights(fields, given.detach()) if fields else None
    rng, version, actor = np.random.default_rng(part.number), -1, None
    stacks = np.repeat(lanes.obs[:, None], STACK, axis=1)
    ages = np.zeros(part.lanes, np.int32)
    while True:
        if weights and weights.version != version:
            version, copy = weights.read(mp.parent_process().is_alive)
            actor = actor_of(copy)
        elif not weights and (actor is None or not given.empty()):
            actor = actor_of(given.get())
        actions = rng.integers(lanes.actions, size=part.lanes)
        greedy = rng.random(part.lanes) >= part.epsilon
        if greedy.any():
            actions[greedy] = actor.values(stacks[greedy]).argmax(axis=1)
        step = lanes.step(actions)
        ended = step.terminated | step.truncated
        after = np.concatenate([stacks[:, 1:], step.next_obs[:, None]], axis=1)
        for lane in range(part.lanes):
            what = int(actions[lane]), float(step.rewards[lane]), bool(step.terminated[lane])
            env = part.number * part.lanes + lane
            once = stacks[lane, -1].copy(), env, int(ages[lane])
            sent.put((*(once if part.frames_once else (stacks[lane].copy(), after[lane])), *what))
        ages = np.where(ended, 0, ages + 1)
        stacks = next_stacks(stacks, lanes.obs, ended)


class StackReplay:
    """Transitions as they come: two stacks each, although they share most of their frames."""

    def __init__(self, size: int, discount: float):
        """Reserve all memory."""
        self._stacks = np.zeros((size, 2, STACK, SIDE, SIDE), np.uint8)
        self._rest = np.zeros((size, 3), np.float32)
        self._discount, self._count = discount, 0

    def append(self, items: list[tuple]) -> None:
        """Add transitions."""
        for stacks, after, *what in items:
            place = self._count % len(self._rest)
            self._stacks[place, 0], self._stacks[place, 1] = stacks, after
            self._rest[place] = what
            self._count += 1

    def sample(self, count: int, rng: torch.Generator) -> Batch:
        """Return `count` transitions."""
        held = min(self._count, len(self._rest))
        places = torch.randint(held, (count,), generator=rng).numpy()
        stacks, after = (torch.from_numpy(self._stacks[places, which]) for which in (0, 1))
        actions, rewards, over = torch.from_numpy(self._rest[places]).unbind(1)
        return Batch(stacks, actions.long(), rewards, after, self._discount * (1 - over))


class FramesOnce:
    """goalreel's replay buffer, filled with what a queue gives."""

    def __init__(self, replay: FrameReplay):
        """Take the buffer."""
        self._replay, self.sample = replay, replay.sample

    def append(self, items: list[tuple]) -> None:
        """Add steps."""
        frames, envs, ages, actions, rewards, over = zip(*items, strict=True)
        columns = np.stack(frames), envs, actions, rewards, ages, over
        fields = step_fields((SIDE, SIDE)).items()
        self._replay.append(
            {
                name: np.asarray(column, dtype)
                for (name, (dtype, _)), column in zip(fields, columns, strict=True)
            }
        )
