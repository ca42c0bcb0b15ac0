"""A design of the pipeline benchmark at work: experience taken in, learned from, and counted."""

import time
from dataclasses import dataclass

import numpy as np

from benchmarks.training.designs import Design, Queued, Ringed

EPOCH_SAMPLES = 2500
_START = 1000  # steps that are there before anything is learned
_PATIENCE = 120.0  # seconds until they are
_PAUSE = 0.001  # seconds between two looks for steps that are waited for


@dataclass
class Counts:
    """What was done: seconds that passed, of the learner at work, of collectors that waited."""

    passed: float = 0.0
    samples: int = 0
    busy: float = 0.0
    steps: int = 0
    blocked: float = 0.0


class Work:
    """A learner at work on a source of experience.

    Where it is bound to take in a step for each sample, the faster side waits for the other; a
    thread may take in as many as one update needs ahead.
    """

    def __init__(self, design: Design, learner, source: Queued | Ringed):
        """Take in what learning begins with. Raises TimeoutError if it does not come.

        learner: PixelLearner of the design's settings
        """
        self._design, self._learner, self._source = design, learner, source
        self._rows = design.learner.batch * design.learner.accumulation
        self._dice = np.random.default_rng(0)
        self._take(_START, alone=True)
        self._first, self._samples = source.steps, 0
        if design.thread:
            source.start()

    def go_on(self, seconds: float) -> Counts:
        """Take in and learn, in whole updates, for at least so long."""
        counts, source = Counts(), self._source
        begun, steps, blocked = time.monotonic(), source.steps, source.blocked()
        while time.monotonic() - begun < seconds:
            source.check()
            self._wait()
            counts.busy += self._update()
            counts.samples += self._rows
        counts.passed = time.monotonic() - begun
        counts.blocked = source.blocked() - blocked
        # Where it is bound, what a thread took in ahead counts once it is learned from.
        counts.steps = source.steps - steps if self._design.unbound else counts.samples
        return counts

    def _wait(self) -> None:
        """Take in what the next update needs, or wait for the thread that does."""
        if self._design.unbound:
            self._source.limit = float("inf")
            return
        self._take(self._first + self._samples + self._rows, alone=not self._design.thread)

    def _take(self, due: int, alone: bool) -> None:
        """See to it that so many steps are there; alone: no thread takes them in."""
        source, end = self._source, time.monotonic() + _PATIENCE
        source.limit = due if alone else due + self._rows
        while source.steps < due:
            source.check()
            if time.monotonic() > end:
                raise TimeoutError(f"{source.steps} of {due} steps came in {_PATIENCE:g} s")
            if not alone or not source.drain():
                time.sleep(_PAUSE)

    def _update(self) -> float:
        """Learn once, and publish what is due; return the seconds of learning."""
        batch, accumulation = self._design.learner.batch, self._design.learner.accumulation
        begun = time.monotonic()
        self._learner.learn(
            [self._source.replay.sample(batch, self._dice) for _ in range(accumulation)]
        )
        passed = time.monotonic() - begun
        before, self._samples = self._samples, self._samples + self._rows
        epochs = self._samples // EPOCH_SAMPLES - before // EPOCH_SAMPLES
        if self._design.weights or epochs:
            self._source.publish(self._learner.weights())
        return passed
