"""A session of a training from pixels, from its start or a checkpoint to its end or a signal.

The parts stand in collectors, consolidation and trainer; here is the loop that drives them, which
waits for no lock, and what the monitor is told. Collectors run free beside the learner, so that no
two sessions are alike.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from goalreel.training.pixels.collectors import Collectors, Crew
from goalreel.training.pixels.interrupts import Interrupts
from goalreel.training.pixels.learner_settings import SIDE
from goalreel.training.pixels.monitor import Look, Monitor, gpu_use
from goalreel.training.pixels.replay_feeder import Consolidation
from goalreel.training.pixels.settings import PipelineSettings
from goalreel.training.pixels.trainer import Trainer

_PAUSE = 0.001  # seconds, when there is nothing to learn


@dataclass(frozen=True)
class Sums:
    """What counts on from one session of a training to the next.

    seconds: of work; learning: of these, while the learner learned; blocked: that collectors waited
    for room, of all together; steps: taken into the buffer; played: steps of environments, whether
    taken in or dropped; drops: rows that full rings did not take; restarts: of collectors
    """

    sessions: int = 0
    seconds: float = 0.0
    learning: float = 0.0
    blocked: float = 0.0
    steps: int = 0
    played: int = 0
    drops: int = 0
    restarts: int = 0


class Session:
    """One session; `run` is called once.

    settings: of the training; sums: up to the latest look; rows: of the monitor's table
    """

    def __init__(
        self,
        settings: PipelineSettings,
        game: Mapping,
        trainer: Trainer,
        sums: Sums,
        rows: Sequence[Sequence],
        table: Path,
    ):
        """Take what is trained, what came of the sessions before, and where to write the table."""
        self.settings, self._game, self._trainer, self._table = settings, game, trainer, table
        self._before, self.sums, self.rows = sums, sums, rows
        self._learning, self._gpu = 0.0, gpu_use()

    def run(self, interrupts: Interrupts) -> None:
        """Train until all is learned, or a signal came. Raises GoalreelError if it cannot go on."""
        settings, trainer = self.settings, self._trainer
        crew = Crew(
            *(settings.interpreter, self._game, (settings.seed, self._before.sessions)),
            *(settings.collectors, settings.environments, (SIDE, SIDE)),
            *(trainer.replay.stack, settings.ring, settings.backpressure == "block"),
        )
        epsilon = settings.epsilon(trainer.frames(self._before.steps))
        self._began = time.monotonic()
        with Collectors(crew, trainer.learner.weights(), epsilon) as collectors:
            rings = collectors.rings
            consolidation = Consolidation(rings, trainer.replay, settings.environments)
            consolidation.steps = self._before.steps
            consolidation.limit = trainer.limit()
            consolidation.start()
            first = self._look(collectors, consolidation)
            monitor = Monitor(first, settings.frames, self.rows, self._table)
            try:
                self._loop(interrupts, collectors, consolidation, monitor)
            finally:
                collectors.stop()
                consolidation.stop()
                trainer.ended(collectors.ended())
                monitor.take(self._look(collectors, consolidation))
                self.rows = monitor.rows

    def _loop(
        self,
        interrupts: Interrupts,
        collectors: Collectors,
        consolidation: Consolidation,
        monitor: Monitor,
    ) -> None:
        trainer = self._trainer
        while not interrupts.asked:
            consolidation.check()
            collectors.watch()
            trainer.ended(collectors.ended())
            steps = consolidation.steps
            learned = trainer.may_learn(steps) and self._learn(steps, collectors)
            consolidation.limit = trainer.limit()
            collectors.explore(self.settings.epsilon(trainer.frames(steps)))
            if monitor.due():
                monitor.take(self._look(collectors, consolidation))
            if trainer.done(steps, learned):
                break
            if not learned:
                time.sleep(_PAUSE)

    def _learn(self, steps: int, collectors: Collectors) -> bool:
        begun = time.monotonic()
        learned = self._trainer.update()
        if learned:
            self._learning += time.monotonic() - begun
            weights = self._trainer.new_weights(steps)
            if weights is not None:
                collectors.publish(weights)
        return learned

    def _look(self, collectors: Collectors, consolidation: Consolidation) -> Look:
        """Return what can be seen now, and keep the sums."""
        before, trainer, counted = self._before, self._trainer, collectors.counted()
        self.sums = sums = Sums(
            sessions=before.sessions + 1,
            seconds=before.seconds + time.monotonic() - self._began,
            learning=before.learning + self._learning,
            blocked=before.blocked + counted["blocked"] / 1e9,
            steps=consolidation.steps,
            played=before.played + counted["frames"],
            drops=before.drops + counted["drops"],
            restarts=before.restarts + collectors.restarts,
        )
        learned, (return_, distance) = trainer.learned, trainer.means()
        frames = trainer.frames(sums.steps)
        return Look(
            *(sums.seconds, frames, trainer.updates * self.settings.accumulation),
            *(trainer.samples, sums.drops, len(trainer.replay), consolidation.queued()),
            *((learned.loss, learned.td_error) if learned else (math.nan, math.nan)),
            *(trainer.games, return_, distance, self.settings.epsilon(frames)),
            *(sums.blocked, sums.learning, self.settings.collectors, sums.restarts),
            self._gpu(),
        )
