"""The ordinary design of collectors, for comparison: processes that share one locked queue.

Each transition is pickled and put into a `multiprocessing.Queue` by itself, as two stacks of frames
or, where that is what is tried, as one frame. Weights come by a queue too, or by shared memory. All
else is what goalreel's collectors do: the same environments, the same network in NumPy.
"""

import multiprocessing as mp
import queue
import time
from dataclasses import dataclass
from multiprocessing.reduction import DupFd

import numpy as np

from benchmarks.sample import ENV
from goalreel.policies.pixel_network import Actor
from goalreel.training.games.make_lanes import make_lanes
from goalreel.training.games.settings import GameSettings
from goalreel.training.pixels.frame_replay_buffer import Batch, FrameReplay, step_fields
from goalreel.training.shared_memory.weights import SharedWeights, fields_of

WAITING = 1000  # transitions that the queue holds
STACK, SHAPE = 4, (84, 84)
_PATIENCE, _LONGEST = 0.01, 0.2  # seconds
_SPAWN = mp.get_context("spawn")


@dataclass(frozen=True)
class Part:
    """A player's number, environments, chance of random actions, and what it sends."""

    number: int
    lanes: int
    epsilon: float
    frames_once: bool


class Players:
    """Player processes, and the queue of their transitions; a context manager."""

    def __init__(self, players: int, lanes: int, epsilon: float, weights, once: bool, shared: bool):
        """Take how many, and whether frames are sent once and weights come by shared memory."""
        self.lanes, self.queue = players * lanes, _SPAWN.Queue(WAITING)
        self._blocked = _SPAWN.RawArray("q", players)
        self._given = [_SPAWN.Queue(1) for _ in range(players)]
        for given in self._given:  # weights that nobody takes any more are not waited for at exit
            given.cancel_join_thread()
        self._shared = SharedWeights(fields_of(weights)) if shared else None
        self._stop = _SPAWN.Event()
        self.publish(weights)
        told = (self._stop, self.queue, self._blocked)
        self._processes = [
            _SPAWN.Process(
                target=play,
                args=(Part(number, lanes, epsilon, once), *told, *self._source(number, weights)),
                daemon=True,
            )
            for number in range(players)
        ]

    def _source(self, number: int, weights) -> tuple:
        if self._shared is None:
            return self._given[number], None
        return DupFd(self._shared.fd), fields_of(weights)

    def __enter__(self) -> "Players":
        """Start them."""
        try:
            for process in self._processes:
                process.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        """End them."""
        self._stop.set()
        for process in self._processes:
            if process.pid is not None:
                process.kill()
                process.join()
        for one in (self.queue, *self._given):
            one.close()

    def check(self) -> None:
        """Raise ChildProcessError for a player that ended by itself."""
        for number, process in enumerate(self._processes):
            if process.exitcode is not None:
                raise ChildProcessError(f"player {number} ended: exit status {process.exitcode}")

    def publish(self, weights) -> None:
        """Give all players new weights, unless they have not taken the last."""
        if self._shared is not None:
            self._shared.write(weights)
            return
        for given in self._given:
            try:
                given.put_nowait(weights)
            except queue.Full:
                continue

    def blocked(self) -> float:
        """Return the seconds that players waited for the queue, of all together."""
        return sum(self._blocked) / 1e9

    def take(self, most: int) -> list[tuple]:
        """Return up to `most` transitions, taken one at a time.

        With a little patience: of two stacks a pipe holds one, and another is behind it. But no
        longer than a while, however many come, as goalreel's replay feeder does.
        """
        taken, end = [], time.monotonic() + _LONGEST
        while len(taken) < most and time.monotonic() < end:
            try:
                taken.append(self.queue.get(timeout=_PATIENCE))
            except queue.Empty:
                break
        return taken


def play(part: Part, stop, sent, blocked, given, fields) -> None:
    """Play until told to stop; the main function of a player's process."""
    lanes = make_lanes(GameSettings(ENV), part.number, part.lanes)
    weights = given and fields and SharedWeights(fields, given.detach())
    dice, version, actor = np.random.default_rng(part.number), -1, None
    stacks = np.repeat(lanes.obs[:, None], STACK, axis=1)
    ages = np.zeros(part.lanes, np.int32)
    while not stop.is_set():
        if weights:
            if weights.version != version:
                version, copy = weights.read(mp.parent_process().is_alive)
                actor = Actor.of(copy)
        elif actor is None or not given.empty():
            actor = Actor.of(given.get())
        actions = dice.integers(lanes.actions, size=part.lanes)
        greedy = dice.random(part.lanes) >= part.epsilon
        if greedy.any():
            actions[greedy] = actor.values(stacks[greedy]).argmax(axis=1)
        step = lanes.step(actions)
        after = np.concatenate([stacks[:, 1:], step.next_obs[:, None]], axis=1)
        for lane in range(part.lanes):
            what = (int(actions[lane]), float(step.rewards[lane]), bool(step.terminated[lane]))
            if part.frames_once:
                env = part.number * part.lanes + lane
                item = (stacks[lane, -1].copy(), env, int(ages[lane]), *what)
            else:
                item = (stacks[lane].copy(), after[lane], *what)
            begun = time.monotonic_ns()
            sent.put(item)
            blocked[part.number] += time.monotonic_ns() - begun
        ended = step.terminated | step.truncated
        ages = np.where(ended, 0, ages + 1)
        stacks = after
        stacks[ended] = lanes.obs[ended][:, None]


class StackReplay:
    """Transitions as they come: two stacks each, although they share most of their frames."""

    def __init__(self, size: int):
        """Reserve all memory."""
        self._stacks = np.zeros((size, 2, STACK, *SHAPE), np.uint8)
        self._rest = np.zeros((size, 3), np.float32)
        self.count = 0

    def append(self, items: list[tuple]) -> None:
        """Add transitions."""
        for stacks, after, *what in items:
            place = self.count % len(self._rest)
            self._stacks[place, 0], self._stacks[place, 1] = stacks, after
            self._rest[place] = what
            self.count += 1

    def sample(self, count: int, generator: np.random.Generator) -> Batch:
        """Return `count` transitions."""
        places = generator.integers(min(self.count, len(self._rest)), size=count)
        action, reward, terminated = self._rest[places].T
        stacks, after = self._stacks[places, 0], self._stacks[places, 1]
        return Batch(stacks, action.astype(np.int64), reward, after, terminated.astype(bool))


class FramesOnce:
    """goalreel's replay buffer, filled with what a queue gives."""

    def __init__(self, lanes: int, size: int):
        """Reserve all memory."""
        self._replay = FrameReplay(lanes, size // lanes, SHAPE, STACK, 32)

    def append(self, items: list[tuple]) -> None:
        """Add steps."""
        frames, envs, ages, actions, rewards, over = zip(*items, strict=True)
        columns = (np.stack(frames), *map(np.array, (envs, actions, rewards, ages, over)))
        self._replay.append(dict(zip(step_fields(SHAPE), columns, strict=True)))

    def sample(self, count: int, generator: np.random.Generator) -> Batch | None:
        """Return `count` steps."""
        return self._replay.sample(count, generator)
