"""A session of a training from pixels, from a start or checkpoint to the end or a signal.

The loop drives collectors, trainer and monitor without locks. Collectors run concurrently with the
learner, so that two sessions are never the same.
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
from goalreel.training.pixels.collectors import Collectors, GreedyGames
from goalreel.training.pixels.monitor import Monitor
from goalreel.training.pixels.settings import PipelineSettings
from goalreel.training.pixels.trainer import Trainer

_PAUSE = 0.001  # seconds, when there is nothing to learn


@contextlib.contextmanager
def interrupts() -> Iterator[list[str]]:
    """Handle Ctrl-C and SIGTERM as requests to stop, so that a training can be saved.

    Yields a list, to which the first signal adds its name. A second signal has its usual effect.
    """
    names = []

    def restore() -> None:
        for number, handler in handlers.items():
            signal.signal(number, handler)

    def note(number: int, _) -> None:
        names.append(signal.Signals(number).name)
        restore()

    handlers = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield names
    finally:
        restore()


@dataclass
class Session:
    """One session, whose `run` is called once."""

    settings: PipelineSettings
    game: Mapping  # GameSettings as a dict
    trainer: Trainer
    sums: Mapping[str, float]  # totals of the previous sessions, then with this one
    rows: list[list]  # of the monitor's table
    table: Path  # the monitor's file

    def __post_init__(self):
        self._before, self._learning, self._cpu = self.sums, 0.0, _cpu_seconds()
        self._evaluation: GreedyGames | None = None

    def run(self, asked: Sequence[str]) -> None:
        """Train until the end, or until `asked` contains the name of a signal."""
        settings, trainer = self.settings, self.trainer
        epsilon = settings.epsilon(trainer.steps)
        self._began = time.monotonic()
        number, weights = self._before.get("sessions", 0), trainer.learner.weights()
        collectors = Collectors(settings, self.game, number, weights, epsilon)
        with contextlib.closing(collectors):
            first, total = self._sample(collectors), settings.total_timesteps
            monitor = Monitor(first, total, self.rows, self.table)
            try:
                while not (asked or self._turn(collectors, monitor)):
                    pass
            finally:
                if self._evaluation:
                    self._evaluation.close()
                collectors.close()
                while trainer.take_in(collectors.rings):
                    pass
                trainer.ended(collectors.ended())
                monitor.take(self._sample(collectors))

    def _turn(self, collectors: Collectors, monitor: Monitor) -> bool:
        """Make an update if one is due, else take in steps; return whether all is done."""
        trainer = self.trainer
        collectors.check()
        trainer.ended(collectors.ended())
        learned = trainer.is_due() and self._learn(collectors)
        moved = 0 if learned else trainer.take_in(collectors.rings)
        collectors.explore(self.settings.epsilon(trainer.steps))
        over = trainer.steps >= self.settings.total_timesteps and not learned
        trainer.queue_checkpoints(trainer.steps if over else trainer.learned_steps, self._seconds())
        self._evaluate()
        if monitor.is_due():
            monitor.take(self._sample(collectors))
        done = over and not trainer.waiting
        if not (learned or moved or done):
            time.sleep(_PAUSE)
        return done

    def _evaluate(self) -> None:
        """Record an evaluation that has ended, and start the next one."""
        trainer = self.trainer
        if self._evaluation:
            if (returns := self._evaluation.returns()) is None:
                return
            self._evaluation.close()
            self._evaluation = None
            trainer.evaluated(returns)
            latest = trainer.evaluations[-1]
            say(
                f"evaluation of {latest.checkpoint_step:,} decisions, after {latest.seconds:,.0f} "
                f"s: mean return {latest.mean:.1f} of {len(returns)} greedy games"
            )
        if trainer.waiting:
            self._evaluation = GreedyGames(self.settings, self.game, trainer.waiting[0][-1])

    def _seconds(self) -> float:
        return self._before.get("seconds", 0) + time.monotonic() - self._began

    def _learn(self, collectors: Collectors) -> bool:
        start, learner = time.monotonic(), self.trainer.learner
        learned = self.trainer.update()
        if learned:
            self._learning += time.monotonic() - start
            if learner.updates % self.settings.publish_every == 0:
                collectors.publish(learner.weights())
        return learned

    def _sample(self, collectors: Collectors) -> dict:
        """Return the columns of the monitor, and keep the totals."""
        trainer, settings = self.trainer, self.settings
        # `learning` is seconds of updates, `blocked` seconds of all collectors together.
        own = {"sessions": 1, "seconds": time.monotonic() - self._began}
        own |= {"learning": self._learning, "blocked": collectors.blocked()}
        own |= {"cpu_seconds": _cpu_seconds() - self._cpu}
        sums = {name: self._before.get(name, 0) + value for name, value in own.items()}
        self.sums = sums
        count = max(len(trainer.recent), 1)
        means = [sum(column) / count for column in zip(*trainer.recent, strict=True)]
        return_, distance = means or (math.nan, math.nan)
        return {
            **{"seconds": sums["seconds"], "decisions": trainer.steps, "samples": trainer.samples},
            **{"updates": trainer.learner.updates, "buffer": len(trainer.replay)},
            **{"queue": sum(map(len, collectors.rings)), "episodes": trainer.games},
            **trainer.learner.learned,
            **{"return": return_, "distance": distance},
            "evaluation": trainer.evaluations[-1].mean if trainer.evaluations else math.nan,
            "epsilon": settings.epsilon(trainer.steps),
            **{"blocked": sums["blocked"] / settings.collectors, "learning": sums["learning"]},
        }


def _cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its finished children."""
    return sum(os.times()[:4])
