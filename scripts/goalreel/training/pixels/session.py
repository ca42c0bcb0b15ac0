"""A session of a training from pixels, from its start or a checkpoint to its end or a signal.

The loop drives collectors, replay feeder, trainer and monitor, and waits for no lock. Collectors
run free beside the learner, so that no two sessions are alike.
"""

import contextlib
import math
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from goalreel.policies.warp import SIDE
from goalreel.training.pixels.collector import Assignment
from goalreel.training.pixels.collectors import Collectors
from goalreel.training.pixels.monitor import Monitor, Sample, gpu_use
from goalreel.training.pixels.replay_feeder import ReplayFeeder
from goalreel.training.pixels.settings import PipelineSettings
from goalreel.training.pixels.trainer import Trainer

_PAUSE = 0.001  # seconds, when there is nothing to learn
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def interrupts() -> Iterator[list[str]]:
    """Take Ctrl-C and SIGTERM as requests to stop soon, so that a training saves what it has.

    Yields a list, to which the first signal adds its name; a second one does what it did before.
    """
    names = []

    def restore() -> None:
        for number, handler in handlers.items():
            signal.signal(number, handler)

    def note(number: int, _) -> None:
        names.append(signal.Signals(number).name)
        restore()

    handlers = {number: signal.signal(number, note) for number in _SIGNALS}
    try:
        yield names
    finally:
        restore()


@dataclass(frozen=True)
class Sums:
    """Counters that run on from one session of a training to the next."""

    sessions: int = 0
    seconds: float = 0.0  # of work
    learning: float = 0.0  # seconds of these while the learner learned
    blocked: float = 0.0  # seconds that collectors waited for room, of all together
    steps: int = 0  # taken into the buffer
    played: int = 0  # steps of environments, whether taken in or dropped
    drops: int = 0  # rows that full rings did not take
    restarts: int = 0  # of collectors


@dataclass
class Session:
    """One session; `run` is called once."""

    settings: PipelineSettings
    game: Mapping  # GameSettings as a dict
    trainer: Trainer
    sums: Sums  # of the sessions before, then up to the latest sample
    rows: Sequence[Sequence]  # of the monitor's table
    table: Path  # its file

    def __post_init__(self):
        """Keep the sums of the sessions before."""
        self._before, self._learning, self._gpu = self.sums, 0.0, gpu_use()

    def run(self, asked: Sequence[str]) -> None:
        """Train until all is learned, or `asked` has a signal's name. Raises GoalreelError."""
        settings, trainer = self.settings, self.trainer
        assignment = Assignment(
            *(self.game, (settings.seed, self._before.sessions), settings.environments),
            *((SIDE, SIDE), trainer.replay.stack, settings.ring, settings.backpressure == "block"),
        )
        chosen = settings.interpreter, settings.collectors, assignment
        epsilon = settings.epsilon(trainer.frames(self._before.steps))
        self._began = time.monotonic()
        with Collectors(*chosen, trainer.learner.weights(), epsilon) as collectors:
            feeder = ReplayFeeder(collectors.rings, trainer.replay, settings.environments)
            feeder.steps = self._before.steps
            feeder.limit = trainer.limit()
            feeder.start()
            first = self._sample(collectors, feeder)
            monitor = Monitor(first, settings.frames, self.rows, self.table)
            try:
                while not (asked or self._turn(collectors, feeder, monitor)):
                    pass
            finally:
                collectors.stop()
                feeder.stop()
                trainer.ended(collectors.ended())
                monitor.take(self._sample(collectors, feeder))
                self.rows = monitor.rows

    def _turn(self, collectors: Collectors, feeder: ReplayFeeder, monitor: Monitor) -> bool:
        """Learn once if that is due, or wait a little; return whether all is done."""
        trainer = self.trainer
        feeder.check()
        collectors.watch()
        trainer.ended(collectors.ended())
        steps = feeder.steps
        learned = trainer.may_learn(steps) and self._learn(steps, collectors)
        feeder.limit = trainer.limit()
        collectors.explore(self.settings.epsilon(trainer.frames(steps)))
        if monitor.due():
            monitor.take(self._sample(collectors, feeder))
        done = trainer.done(steps, learned)
        if not (learned or done):
            time.sleep(_PAUSE)
        return done

    def _learn(self, steps: int, collectors: Collectors) -> bool:
        begun = time.monotonic()
        learned = self.trainer.update()
        if learned:
            self._learning += time.monotonic() - begun
            weights = self.trainer.new_weights(steps)
            if weights is not None:
                collectors.publish(weights)
        return learned

    def _sample(self, collectors: Collectors, feeder: ReplayFeeder) -> Sample:
        """Return the present state, and keep the sums."""
        before, trainer, counted = self._before, self.trainer, collectors.counted()
        self.sums = sums = Sums(
            sessions=before.sessions + 1,
            seconds=before.seconds + time.monotonic() - self._began,
            learning=before.learning + self._learning,
            blocked=before.blocked + counted["blocked"] / 1e9,
            steps=feeder.steps,
            played=before.played + counted["frames"],
            drops=before.drops + counted["drops"],
            restarts=before.restarts + collectors.restarts,
        )
        learned, (return_, distance) = trainer.learned, trainer.means()
        frames = trainer.frames(sums.steps)
        return Sample(
            *(sums.seconds, frames, trainer.updates * self.settings.accumulation),
            *(trainer.samples, sums.drops, len(trainer.replay), feeder.queued()),
            *((learned.loss, learned.td_error) if learned else (math.nan, math.nan)),
            *(trainer.games, return_, distance, self.settings.epsilon(frames)),
            *(sums.blocked, sums.learning, self.settings.collectors, sums.restarts),
            self._gpu(),
        )
