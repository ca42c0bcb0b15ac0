"""What each part of the collectors' pipeline brings on top of those before it, with fresh data.

    ordinary            processes play, and put each transition, two pickled stacks of frames, into
                        one `multiprocessing.Queue` with its lock; weights come by queues; the
                        learner takes in what it is about to learn from
    + frames once       a transition has one frame, and the replay buffer holds it once
    + shared weights    the players copy the latest weights from shared memory, without a lock
    + rings             a ring without a lock for each player, written in place
    + a thread          which moves steps from the rings into the buffer: goalreel's own design

All play Pong, two processes of four environments, and learn in bfloat16 with the small network and
batches of 32, by 8 samples a decision, as goalreel's preset does, and by 1, where playing weighs
more. None is more than 16 steps of each environment ahead of the learner: without that bound a
player that runs ahead looks faster, and the learner's data is older. The table is pipeline.csv and
pipeline.md.

    python -m benchmarks.training.pipeline            15 minutes on two quiet cores
    python -m benchmarks.training.pipeline --runs 1   3 minutes
"""

import contextlib
import math
import multiprocessing as mp
import queue
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from multiprocessing.reduction import DupFd

import numpy as np
import torch

from benchmarks.harness import TRAINING_PACKAGES, medians, write_table
from benchmarks.training.rows import Measured, Stopwatch, load_note, median, ratio, rows_measured

# isort: split
from goalreel.policies.pixel_network import SIDE
from goalreel.training.games.make_lanes import make_lanes
from goalreel.training.games.settings import GameSettings
from goalreel.training.pixels.collector import Assignment, actor_of, next_stacks, step_fields
from goalreel.training.pixels.collectors import Collectors
from goalreel.training.pixels.frame_replay_buffer import Batch, FrameReplay
from goalreel.training.pixels.learner import PixelLearner
from goalreel.training.pixels.replay_feeder import ReplayFeeder
from goalreel.training.pixels.settings import BATCH as MOVED
from goalreel.training.pixels.settings import LearnerSettings
from goalreel.training.shared_memory.weights import SharedWeights, fields_of

GAME, ACTIONS, PLAYERS, LANES, EPSILON, BATCH = "ALE/Pong-v5", 6, 2, 4, 0.05, 32
AHEAD = 16 * PLAYERS * LANES  # steps that may wait
REPLAY, START, WARM, PUBLISH = 4000, 1024, 256, 8  # three counts of decisions; updates
MEASURED = {8: 1536, 1: 6144}  # decisions, by samples for each
HEADER = ("samples a decision", "design", "wall, ms a decision", "change, wall", "of all",
          "CPU, ms a decision", "change, CPU", "others, cores")  # fmt: skip
_PAUSE = 0.001  # seconds between two looks for steps that are waited for


@dataclass(frozen=True)
class Design:
    """Which parts there are."""

    once: bool = False
    weights: bool = False
    rings: bool = False
    thread: bool = False


DESIGNS = {
    "ordinary": Design(),
    "+ frames once": Design(once=True),
    "+ shared weights": Design(once=True, weights=True),
    "+ rings": Design(once=True, weights=True, rings=True),
    "+ a thread": Design(once=True, weights=True, rings=True, thread=True),
}
ROWS = {f"{samples} {name}": (samples, name) for samples in MEASURED for name in DESIGNS}


# The ordinary design: all but the queues is what goalreel's collectors do.

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


class Queued:
    """Experience by a queue.

    Attributes:
        replay: the buffer.
        steps: how many have been taken in.
        limit: of steps, beyond which none is taken in.
    """

    def __init__(self, players, replay):
        """Take the players and the buffer."""
        self._players, self.replay = players, replay
        self.publish, self.check = players.publish, players.check
        self.steps = self.limit = 0

    def drain(self) -> int:
        """Take in what has come; return how many steps that were."""
        items = self._players.take(self.limit - self.steps)
        if items:
            self.replay.append(items)
        self.steps += len(items)
        return len(items)


@contextlib.contextmanager
def experience(design: Design, weights: Mapping) -> Iterator:
    """Yield what gives a design its experience: Queued, or a ReplayFeeder with the same."""
    lanes = PLAYERS * LANES
    frames = FrameReplay(lanes, REPLAY // lanes, (SIDE, SIDE), 4, 64) if design.once else None
    if not design.rings:
        parts = [Part(GAME, n, LANES, EPSILON, design.once) for n in range(PLAYERS)]
        with Players(parts, AHEAD, weights, design.weights) as players:
            yield Queued(players, FramesOnce(frames) if design.once else StackReplay(REPLAY, 0.99))
        return
    game = asdict(GameSettings(GAME).filled())
    assignment = Assignment(game, (0,), LANES, (SIDE, SIDE), 4, AHEAD // PLAYERS, block=True)
    with Collectors(sys.executable, PLAYERS, assignment, weights, EPSILON) as collectors:
        feeder = ReplayFeeder(collectors.rings, frames, LANES)
        feeder.replay, feeder.publish = frames, collectors.publish
        if design.thread:
            feeder.limit = 0
            feeder.start()
        yield feeder
        feeder.limit = 0  # what waits in the rings is left there
        feeder.stop()


def measure(row: str) -> Measured:
    """Learn by a row's design, so many samples for each decision; return its time."""
    samples, name = ROWS[row]
    design = DESIGNS[name]
    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(0)
    learner = PixelLearner(LearnerSettings(batch=BATCH, network="small", device="cpu"), ACTIONS, 0)
    stopwatch, decisions = Stopwatch(START + WARM, MEASURED[samples]), START
    with experience(design, learner.weights()) as source:
        while stopwatch.going(decisions):
            decisions = START + math.ceil((learner.updates + 1) * BATCH / samples)
            # A thread has the steps of the next updates ready, as in trainer.Trainer.limit.
            ahead = MOVED + 3 * BATCH // samples if design.thread else 0
            source.limit = decisions + ahead
            while source.steps < decisions:
                source.check()
                if design.thread or not source.drain():
                    time.sleep(_PAUSE)
            learner.learn([learner.prepared(source.replay.sample(BATCH, rng))])
            if learner.updates % PUBLISH == 0:
                source.publish(learner.weights())
    return stopwatch.measured()


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table; or measure one row."""
    chosen, found = rows_measured("benchmarks.training.pipeline", __doc__, ROWS, measure, argv)
    if found:
        rows = [cells(samples, i, found) for samples in MEASURED for i in range(len(DESIGNS))]
        notes = [
            "change: against the row before; of all: against the ordinary design. CPU time is "
            f"that of all processes. {medians(chosen.runs)}; changes are those of each run.",
            f"At most {AHEAD} steps wait between players and learner, whatever the design.",
            load_note(found),
        ]
        write_table(chosen.output / "pipeline", HEADER, rows, notes, 2, TRAINING_PACKAGES)


def cells(samples: int, place: int, found: dict[str, list[Measured]]) -> list[str]:
    """Return the row of a design, the place-th, below HEADER."""
    measured = [found[f"{samples} {name}"] for name in DESIGNS]
    own, before, first = measured[place], measured[max(place - 1, 0)], measured[0]

    def change(figure: str, to: list[Measured]) -> str:
        return f"{ratio(own, to, figure) - 1:+.1%}" if place else ""

    return [
        *(str(samples), list(DESIGNS)[place], f"{median(own, 'wall_ms'):.2f}"),
        *(change("wall_ms", before), change("wall_ms", first)),
        *(f"{median(own, 'cpu_ms'):.2f}", change("cpu_ms", before)),
        f"{median(own, 'others_cores'):.2f}",
    ]


if __name__ == "__main__":
    main()
