"""The learning side of a training from pixels: when to learn, from what, and what to keep.

It knows no process and no thread. Its state can be saved, and resumed sample by sample.
"""

import json
import math
from collections import deque
from collections.abc import Iterable, Mapping

import numpy as np

from goalreel.policies.warp import SIDE
from goalreel.training.pixels.frame_replay_buffer import FrameReplay
from goalreel.training.pixels.settings import PipelineSettings

_RECENT, _ENOUGH = 100, 20  # games that a mean is taken over, and the fewest for it to be the best
_MARGIN = 64  # steps of a lane that are written at a time, unless the buffer is small


class Trainer:
    """A learner, its replay buffer, and the counters of a training.

    Attributes:
        learner: a learner.PixelLearner.
        replay: the buffer.
        updates: of the learner.
        games: that have ended.
        recent: return and distance of the latest of them.
        best: mean return, frames and weights of when it was the highest.
        learned: of the latest update.
    """

    def __init__(self, settings: PipelineSettings, learner, stack: int):
        """Begin with an empty buffer.

        Raises GoalreelError for a buffer that the machine's memory does not hold.
        """
        self._settings, self.learner = settings, learner
        size = settings.buffer // settings.lanes
        margin = max(1, min(_MARGIN, size // 8))
        self.replay = FrameReplay(settings.lanes, size, (SIDE, SIDE), stack, margin)
        self._rng = np.random.default_rng(settings.seed)
        self.updates = self.games = 0
        self.recent: deque[tuple[float, float]] = deque(maxlen=_RECENT)
        self.best: tuple[float, int, Mapping[str, np.ndarray]] | None = None
        self.learned = None

    @property
    def samples(self) -> int:
        """All samples that were learned from."""
        return self.updates * self._settings.samples

    def frames(self, steps: int) -> int:
        """Return the frames of so many steps, `frame_skip` for each.

        The last step of an episode counts as many, although it may be shorter.
        """
        return steps * self._settings.frame_skip

    def may_learn(self, steps: int) -> bool:
        """Return whether an update is due after so many steps."""
        return steps >= self._due()

    def _due(self) -> int:
        """Return the steps after which the next update is due."""
        settings = self._settings
        if settings.replay_ratio is None:
            return settings.start
        samples = self.samples + settings.samples
        return settings.start + math.ceil(samples / settings.replay_ratio)

    def limit(self) -> int:
        """Return the steps that may be taken in before the next update.

        Beyond the step at which that is due there are three updates' worth, so that the learner
        finds work whenever it is ready for it, rounded up so that what the replay feeder moves at
        a time is a large batch.
        """
        settings = self._settings
        last = -(-settings.frames // settings.frame_skip)
        if settings.replay_ratio is None:
            return last
        ahead = self._due() - settings.start + 3 * settings.samples / settings.replay_ratio
        return min(settings.start + math.ceil(ahead / settings.stride) * settings.stride, last)

    def done(self, steps: int, learned: bool) -> bool:
        """Return whether all frames are in, and all is learned; learned: an update just now."""
        over = self.frames(steps) >= self._settings.frames
        return over and (self._settings.replay_ratio is None or not learned)

    def update(self) -> bool:
        """Learn once; return whether there was enough in the buffer to do so."""
        batches = []
        for _ in range(self._settings.accumulation):
            batch = self.replay.sample(self._settings.batch, self._rng)
            if batch is None:
                return False
            batches.append(batch)
        self.learned = self.learner.learn(batches)
        self.updates += 1
        if self.updates % self._settings.target_every == 0:
            self.learner.update_target()
        return True

    def new_weights(self, steps: int) -> Mapping[str, np.ndarray] | None:
        """Return the weights if the latest update is one to publish; keep them if they are best."""
        if self.updates % self._settings.publish_every:
            return None
        weights = self.learner.weights()
        mean = self.mean
        if not math.isnan(mean) and (self.best is None or mean > self.best[0]):
            self.best = mean, self.frames(steps), weights
        return weights

    def ended(self, games: Iterable[tuple[float, float, int]]) -> None:
        """Add games that have ended: return, distance, frames."""
        for return_, distance, _ in games:
            self.recent.append((return_, distance))
            self.games += 1

    @property
    def mean(self) -> float:
        """The mean return of the recent games, nan where too few have ended."""
        return self.means()[0] if len(self.recent) >= _ENOUGH else float("nan")

    def means(self) -> tuple[float, float]:
        """Return the mean return and distance of the recent games, nan of none."""
        if not self.recent:
            return float("nan"), float("nan")
        return tuple(sum(column) / len(column) for column in zip(*self.recent, strict=True))

    def progress(self) -> dict:
        """Return what to save beside the learner and the buffer: plain values and arrays."""
        return {
            **{"updates": self.updates, "games": self.games, "best": self.best},
            "recent": [list(pair) for pair in self.recent],
            "rng": json.dumps(self._rng.bit_generator.state),
        }

    def restore(self, progress: Mapping) -> None:
        """Resume from what `progress` gave."""
        self.updates, self.games = progress["updates"], progress["games"]
        self.recent.extend(tuple(pair) for pair in progress["recent"])
        self.best = progress["best"]
        self._rng.bit_generator.state = json.loads(progress["rng"])
