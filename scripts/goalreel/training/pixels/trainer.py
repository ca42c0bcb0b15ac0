"""The learning side of a training from pixels: when to learn, from what, and what to keep.

It knows no process and no thread: pipeline drives it beside collectors, and tests in lock step.
What it holds can be saved and goes on from there, sample by sample: see checkpoint.
"""

import json
import math
from collections import deque
from collections.abc import Iterable, Mapping

import numpy as np

from goalreel.training.pixels.frame_replay_buffer import FrameReplay
from goalreel.training.pixels.learner_settings import SIDE
from goalreel.training.pixels.settings import PipelineSettings

_RECENT, _ENOUGH = 100, 20  # games that a mean is taken over, and the fewest for it to be the best
_MARGIN = 64  # steps of a lane that are written at a time, unless the buffer is small


class Trainer:
    """A learner, its replay buffer, and the counters of a training.

    updates: of the learner; recent: returns and distances of the latest games; best: mean return,
    frames and weights of when it was the highest; learned: of the latest update
    """

    def __init__(self, settings: PipelineSettings, learner, stack: int, skip: int):
        """Begin with an empty buffer; learner: pixel_learner.PixelLearner; skip: of the game.

        Raises GoalreelError for a buffer that the machine's memory does not hold.
        """
        self._settings, self.learner, self._skip = settings, learner, skip
        size = settings.buffer // settings.lanes
        margin = max(1, min(_MARGIN, size // 8))
        self.replay = FrameReplay(settings.lanes, size, (SIDE, SIDE), stack, margin)
        self._dice = np.random.default_rng(settings.seed)
        self.updates = self.games = 0
        self.recent: deque[tuple[float, float]] = deque(maxlen=_RECENT)
        self.best: tuple[float, int, Mapping[str, np.ndarray]] | None = None
        self.learned = None

    @property
    def samples(self) -> int:
        """All samples that were learned from."""
        return self.updates * self._settings.samples

    def frames(self, steps: int) -> int:
        """Return the frames of so many steps, `skip` for each.

        The last step of an episode counts as one of these too, although it may be shorter.
        """
        return steps * self._skip

    def may_learn(self, steps: int) -> bool:
        """Tell whether an update is due after so many steps."""
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
        finds work whenever it is ready for it, rounded up so that what is taken in at a time
        (consolidation) is a large batch.
        """
        settings = self._settings
        last = -(-settings.frames // self._skip)
        if settings.replay_ratio is None:
            return last
        ahead = self._due() - settings.start + 3 * settings.samples / settings.replay_ratio
        return min(settings.start + math.ceil(ahead / settings.stride) * settings.stride, last)

    def done(self, steps: int, learned: bool) -> bool:
        """Tell whether all frames are in, and all that is due is learned.

        learned: whether there was an update just now
        """
        over = self.frames(steps) >= self._settings.frames
        return over and (self._settings.replay_ratio is None or not learned)

    def update(self) -> bool:
        """Learn once; return whether there was enough in the buffer to do so."""
        batches = []
        for _ in range(self._settings.accumulation):
            batch = self.replay.sample(self._settings.batch, self._dice)
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
        """Take note of games: return, distance, frames."""
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
            "dice": json.dumps(self._dice.bit_generator.state),
        }

    def go_on(self, progress: Mapping) -> None:
        """Take over what `progress` gave."""
        self.updates, self.games = progress["updates"], progress["games"]
        self.recent.extend(tuple(pair) for pair in progress["recent"])
        self.best = progress["best"]
        self._dice.bit_generator.state = json.loads(progress["dice"])
