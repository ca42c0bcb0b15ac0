"""The designs that benchmarks/training/pipeline.py compares, and how each gets its experience.

The ordinary design is in ordinary.py; goalreel's own has the collectors, their rings,
the thread that empties them and the replay buffer.
"""

import contextlib
import sys
import threading
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace

from benchmarks.sample import ENV
from benchmarks.training.ordinary import SHAPE, STACK, WAITING, FramesOnce, Players, StackReplay
from goalreel.training.games.settings import GameSettings
from goalreel.training.pixels.collector import Assignment
from goalreel.training.pixels.collectors import Collectors
from goalreel.training.pixels.frame_replay_buffer import FrameReplay
from goalreel.training.pixels.replay_feeder import ReplayFeeder
from goalreel.training.pixels.settings import BATCH, LearnerSettings

_REPLAY = 8000  # steps


@dataclass(frozen=True)
class Design:
    """Which changes to the ordinary design are made.

    thread: one of its own takes experience in, and not the learner's before each update
    unbound: all that comes is taken in, and not a step for each sample that is learned
    """

    once: bool = False
    rings: bool = False
    thread: bool = False
    unbound: bool = False
    large: bool = False
    autocast: bool = False
    compile: bool = False
    weights: bool = False

    @property
    def learner(self) -> LearnerSettings:
        """How it learns."""
        batch, accumulation = (512, 4) if self.large else (64, 1)
        return LearnerSettings(
            *(batch, accumulation), autocast=self.autocast, compile=self.compile, device="cpu"
        )


_PLAIN, _FULL = Design(), Design(*[True] * len(fields(Design)))
ORDINARY, BOUND, ALL = "ordinary", "all, at the ordinary ratio", "all"
DESIGNS = {
    ORDINARY: _PLAIN,
    "frames once": replace(_PLAIN, once=True),
    "rings, frames once": replace(_PLAIN, rings=True),
    "a thread takes from the queue": replace(_PLAIN, thread=True),
    "a thread takes all there is": replace(_PLAIN, thread=True, unbound=True),
    "batches of 4 x 512": replace(_PLAIN, large=True),
    "bfloat16": replace(_PLAIN, autocast=True),
    "torch.compile": replace(_PLAIN, compile=True),
    "weights after every update": replace(_PLAIN, weights=True),
    BOUND: replace(_FULL, unbound=False),
    ALL: _FULL,
}


class Queued:
    """Experience by a queue.

    steps: how many are in the replay buffer; limit: of steps, beyond which none is taken
    """

    def __init__(self, design: Design, players: Players):
        """Make the replay buffer."""
        lanes = players.lanes
        self._players, self.publish, self.blocked = players, players.publish, players.blocked
        self.replay = FramesOnce(lanes, _REPLAY) if design.once else StackReplay(_REPLAY)
        self.steps, self.limit = 0, float("inf")
        self._failure: BaseException | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def drain(self) -> int:
        """Move a batch at most into the buffer; return how many steps that were."""
        items = self._players.take(int(min(BATCH, self.limit - self.steps)))
        if items:
            self.replay.append(items)
        self.steps += len(items)
        return len(items)

    def start(self) -> None:
        """Have a thread drain."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()
        if self._thread.ident:
            self._thread.join()

    def check(self) -> None:
        """Raise what the thread ended by, and ChildProcessError for a player that ended."""
        if self._failure:
            raise self._failure
        self._players.check()

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                if not self.drain():
                    self._stopped.wait(0.002)
        except BaseException as error:  # check raises it
            self._failure = error


class Ringed:
    """Experience by goalreel's rings, taken in by its ReplayFeeder; see Queued."""

    def __init__(self, collectors: Collectors, environments: int):
        """Make the replay buffer."""
        self._collectors = collectors
        lanes = environments * len(collectors.rings)
        self.replay = FrameReplay(lanes, _REPLAY // lanes, SHAPE, STACK, 32)
        self._moving = ReplayFeeder(collectors.rings, self.replay, environments)
        self.publish = collectors.publish
        self.drain, self.start = self._moving.drain, self._moving.start

    @property
    def steps(self) -> int:
        """Steps that are in the buffer."""
        return self._moving.steps

    @property
    def limit(self) -> float:
        """Of steps, beyond which none is taken."""
        return self._moving.limit

    @limit.setter
    def limit(self, steps: float) -> None:
        self._moving.limit = steps

    def blocked(self) -> float:
        """Return the seconds that collectors waited."""
        return self._collectors.counted()["blocked"] / 1e9

    def stop(self) -> None:
        """End the thread, and leave what is in the rings."""
        self.limit = 0
        self._moving.stop()

    def check(self) -> None:
        """Raise what the thread or a collector ended by."""
        self._moving.check()
        self._collectors.watch()


@contextlib.contextmanager
def experience(design: Design, options: Namespace, weights: Mapping) -> Iterator[Queued | Ringed]:
    """Yield what gives a design its experience; end its thread and its processes afterwards."""
    with contextlib.ExitStack() as held:
        source = _source(held, design, options, weights)
        held.callback(source.stop)  # before the processes end
        yield source


def _source(
    held: contextlib.ExitStack, design: Design, options: Namespace, weights: Mapping
) -> Queued | Ringed:
    count, lanes = options.collectors, options.environments
    if not design.rings:
        told = (count, lanes, options.epsilon, weights, design.once, design.weights)
        return Queued(design, held.enter_context(Players(*told)))
    game = asdict(GameSettings(ENV).filled())
    capacity = max(WAITING // count // lanes, 1) * lanes  # in all as many as the queue holds
    assignment = Assignment(game, (0,), lanes, SHAPE, STACK, capacity, block=True)
    collectors = Collectors(sys.executable, count, assignment, weights, options.epsilon)
    return Ringed(held.enter_context(collectors), lanes)
