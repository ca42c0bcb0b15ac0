"""A session of a training from pixels, from its start or a checkpoint to its end or a signal.

The loop drives collectors, replay feeder, trainer and monitor, and waits for no lock. Collectors
run free beside the learner, so that no two sessions are alike.
"""

import contextlib
import math
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from goalreel.cli import say
from goalreel.policies.pixel_network import SIDE
from goalreel.training.pixels.collector import Assignment
from goalreel.training.pixels.collectors import Collectors
from goalreel.training.pixels.evaluator import Evaluator
from goalreel.training.pixels.monitor import Monitor, gpu_use
from goalreel.training.pixels.replay_feeder import ReplayFeeder
from goalreel.training.pixels.settings import BATCH, PipelineSettings
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
    steps: int = 0  # decisions that were taken into the buffer
    played: int = 0  # steps of environments, whether taken in or dropped
    cpu_seconds: float = 0.0  # of the trainer, and of its collectors and evaluations that ended
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
        self._cpu, self._evaluator = _cpu_seconds(), None

    def run(self, asked: Sequence[str]) -> None:
        """Train until all is learned, or `asked` has a signal's name. Raises GoalreelError."""
        settings, trainer = self.settings, self.trainer
        assignment = Assignment(
            *(self.game, (settings.seed, self._before.sessions), settings.environments),
            *((SIDE, SIDE), trainer.replay.stack, settings.ring, settings.backpressure == "block"),
        )
        chosen = settings.interpreter, settings.collectors, assignment
        epsilon = settings.epsilon(self._before.steps)
        self._began = time.monotonic()
        with Collectors(*chosen, trainer.learner.weights(), epsilon) as collectors:
            feeder = ReplayFeeder(collectors.rings, trainer.replay, settings.environments)
            feeder.steps = self._before.steps
            feeder.limit = trainer.limit()
            feeder.start()
            first = self._sample(collectors, feeder)
            monitor = Monitor(first, settings.decisions, self.rows, self.table)
            try:
                while not (asked or self._turn(collectors, feeder, monitor)):
                    pass
            finally:
                if self._evaluator:
                    self._evaluator.stop()
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
        collectors.explore(self.settings.epsilon(steps))
        over = trainer.done(steps, learned)
        trainer.queue_checkpoints(steps if over else trainer.learned_from(steps), self._seconds())
        self._evaluate()
        if monitor.due():
            monitor.take(self._sample(collectors, feeder))
        done = over and not trainer.waiting
        if not (learned or done):
            time.sleep(_PAUSE)
        return done

    def _evaluate(self) -> None:
        """Take the returns of an evaluation that has ended, and begin the next one."""
        settings, trainer = self.settings, self.trainer
        if self._evaluator:
            returns = self._evaluator.returns()
            if returns is None:
                return
            self._evaluator.stop()
            self._evaluator = None
            trainer.evaluated(returns)
            latest = trainer.evaluations[-1]
            say(
                f"evaluation of {latest.checkpoint_step:,} decisions, after "
                f"{latest.seconds:,.0f} s: mean return {latest.mean:.1f} of {len(returns)} games"
            )
        if trainer.waiting:
            weights = trainer.waiting[0][-1]
            game = self.game, trainer.replay.stack, settings.games
            self._evaluator = Evaluator.start(settings.interpreter, *game, weights)

    def _seconds(self) -> float:
        return self._before.seconds + time.monotonic() - self._began

    def _learn(self, steps: int, collectors: Collectors) -> bool:
        begun = time.monotonic()
        learned = self.trainer.update(steps)
        if learned:
            self._learning += time.monotonic() - begun
            weights = self.trainer.new_weights()
            if weights is not None:
                collectors.publish(weights)
        return learned

    def _sample(self, collectors: Collectors, feeder: ReplayFeeder) -> dict:
        """Return the present state as the monitor takes it, and keep the sums."""
        before, trainer, counted = self._before, self.trainer, collectors.counted()
        self.sums = sums = Sums(
            sessions=before.sessions + 1,
            seconds=self._seconds(),
            cpu_seconds=before.cpu_seconds + _cpu_seconds() - self._cpu,
            learning=before.learning + self._learning,
            blocked=before.blocked + counted["blocked"] / 1e9,
            steps=feeder.steps,
            played=before.played + counted["frames"],
            drops=before.drops + counted["drops"],
            restarts=before.restarts + collectors.restarts,
        )
        learned, (return_, distance) = trainer.learner.learned, trainer.means()
        settings, evaluations = self.settings, trainer.evaluations
        return {
            **{"seconds": sums.seconds, "decisions": sums.steps, "updates": trainer.updates},
            **{"samples": trainer.samples, "drops": sums.drops, "buffer": len(trainer.replay)},
            # Steps in the rings; the most that rings and one batch of the feeder hold.
            **{"queue": feeder.queued()},
            "ahead": settings.ring * settings.collectors + max(BATCH, settings.num_envs),
            **{"loss": learned.loss, "td_error": learned.td_error, "episodes": trainer.games},
            **{"return": return_, "distance": distance},
            "evaluation": evaluations[-1].mean if evaluations else math.nan,
            "epsilon": settings.epsilon(sums.steps),
            **{"blocked": sums.blocked / settings.collectors, "learning": sums.learning},
            **{"restarts": sums.restarts, "gpu": self._gpu()},
        }


def _cpu_seconds() -> float:
    """Return the CPU seconds of this process, and of those children that have ended."""
    return sum(os.times()[:4])
