"""The learning side of a training from pixels: when to learn, from what, and what to keep.

While the learner makes an update, a thread draws the next one's samples and has the target network
evaluate them: a third of the work, for a second core. The state can be saved, and resumed sample by
sample.
"""

import math
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass

import numpy as np
import torch

from goalreel.policies.pixel_network import SIDE
from goalreel.training.pixels.frame_replay_buffer import FrameReplay
from goalreel.training.pixels.settings import BATCH, PipelineSettings

_RECENT = 100  # games that a mean is taken over
_MARGIN = 64  # steps of a environment that are written at a time, unless the buffer is small

Weights = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Evaluation:
    """The returns of greedy games by the weights after some training."""

    checkpoint_step: int  # decisions
    seconds: float  # of training, when the weights were taken
    returns: tuple[float, ...]  # of each game

    @property
    def mean(self) -> float:
        """The mean return."""
        return sum(self.returns) / len(self.returns)


class Trainer:
    """A learner, its replay buffer, and the counters of a training.

    Attributes:
        learner: a learner.PixelLearner.
        replay: the buffer.
        updates: of the learner.
        games: that have ended.
        recent: return and distance of the latest of them.
        due: checkpoints whose evaluations are still to come, increasing.
        waiting: of checkpoints that have come, not yet evaluated: step, seconds, weights.
        evaluations: those that were made, in order.
        kept: weights by checkpoint: those asked for, of the best evaluation, and of the latest.
    """

    def __init__(self, settings: PipelineSettings, learner):
        """Begin with an empty buffer.

        Raises GoalreelError for a buffer that the machine's memory does not hold.
        """
        self._settings, self.learner = settings, learner
        size = settings.buffer // settings.num_envs
        margin = max(1, min(_MARGIN, size // 8))
        n_step = settings.n_step, settings.discount, learner.device
        shape = (SIDE, SIDE), settings.stack
        self.replay = FrameReplay(settings.num_envs, size, *shape, margin, *n_step)
        self._rng = torch.Generator(self.replay.device).manual_seed(settings.seed)
        self._drawn = self._rng.get_state()  # before the samples that are drawn ahead
        self._ahead: Future | None = None
        self._thread = ThreadPoolExecutor(1)
        self.updates = self.games = 0
        self.recent: deque[tuple[float, float]] = deque(maxlen=_RECENT)
        self.due = deque(settings.checkpoint_steps)
        self.waiting: deque[tuple[int, float, Weights]] = deque()
        self.evaluations: list[Evaluation] = []
        self.kept: dict[int, Weights] = {}

    @property
    def samples(self) -> int:
        """All samples that were learned from."""
        return self.updates * self._settings.samples

    def may_learn(self, steps: int) -> bool:
        """Return whether an update is due after so many decisions."""
        return steps >= self._due()

    def _due(self) -> int:
        """Return the decisions after which the next update is due."""
        settings = self._settings
        if not settings.replay_ratio:
            return settings.learning_starts
        samples = self.samples + settings.samples
        return settings.learning_starts + math.ceil(samples / settings.replay_ratio)

    def limit(self) -> int:
        """Return the decisions that may be taken in before the next update.

        Beyond the one at which that is due there are three updates' worth, so that the learner
        finds work whenever it is ready for it, rounded up so that what the replay feeder moves at
        a time is a batch.
        """
        settings, last = self._settings, self._settings.decisions
        if not settings.replay_ratio:
            return last
        ahead = self._due() - settings.learning_starts
        ahead += 3 * settings.samples / settings.replay_ratio
        return min(settings.learning_starts + math.ceil(ahead / BATCH) * BATCH, last)

    def done(self, steps: int, learned: bool) -> bool:
        """Return whether all decisions are in, and all is learned; learned: an update just now."""
        over = steps >= self._settings.decisions
        return over and not (self._settings.replay_ratio and learned)

    def update(self, steps: int) -> bool:
        """Learn once; return whether there was enough in the buffer to do so."""
        prepared = self._ahead.result() if self._ahead else self._prepared()
        self._ahead = None
        if prepared is None:
            return False
        self._drawn = self._rng.get_state()
        if self.learner.device.type == "cpu":  # a GPU computes beside this thread in any case
            self._ahead = self._thread.submit(self._prepared)
        settings, before = self._settings, self.learned_from(steps)
        self.learner.learn(prepared, settings.rate_left(before))
        self.updates += 1
        if self.learned_from(steps) // settings.target_every > before // settings.target_every:
            if self._ahead:
                self._ahead.exception()  # it has ended: the target network is free
            self.learner.update_target()
        return True

    def _prepared(self) -> list | None:
        """Return what the learner takes for an update, None if the buffer holds too little."""
        settings, prepared = self._settings, []
        for _ in range(settings.accumulation):
            batch = self.replay.sample(settings.batch, self._rng)
            if batch is None:
                return None
            prepared.append(self.learner.prepared(batch))
        return prepared

    def learned_from(self, steps: int) -> int:
        """Return the decisions whose share of updates is made, of so many that are in."""
        settings = self._settings
        if not settings.replay_ratio:
            return steps
        return min(steps, settings.learning_starts + int(self.samples / settings.replay_ratio))

    def new_weights(self) -> Weights | None:
        """Return the weights if the latest update is one to publish."""
        if self.updates % self._settings.publish_every:
            return None
        return self.learner.weights()

    def queue_checkpoints(self, decisions: int, seconds: float) -> None:
        """Queue the weights for evaluation at each checkpoint that has come."""
        while self.due and self.due[0] <= decisions:
            self.waiting.append((self.due.popleft(), seconds, self.learner.weights()))

    def evaluated(self, returns: Iterable[float]) -> None:
        """Record the games of the first weights that wait, and keep these if they are needed."""
        step, seconds, weights = self.waiting.popleft()
        self.evaluations.append(Evaluation(step, seconds, tuple(returns)))
        self.kept[step] = weights
        needed = {*self._settings.checkpoints, self.best.checkpoint_step, step}
        self.kept = {step: weights for step, weights in self.kept.items() if step in needed}

    @property
    def best(self) -> Evaluation | None:
        """The evaluation of the highest mean, the earliest of equal ones."""
        return max(self.evaluations, key=lambda evaluation: evaluation.mean, default=None)

    def ended(self, games: Iterable[tuple[float, float, int]]) -> None:
        """Add games that have ended: return, distance, frames."""
        for return_, distance, _ in games:
            self.recent.append((return_, distance))
            self.games += 1

    def means(self) -> tuple[float, float]:
        """Return the mean return and distance of the recent games, nan of none."""
        if not self.recent:
            return float("nan"), float("nan")
        return tuple(sum(column) / len(column) for column in zip(*self.recent, strict=True))

    def progress(self) -> dict:
        """Return what to save beside the learner and the buffer: plain values and arrays."""
        return {
            **{"updates": self.updates, "games": self.games},
            "recent": [list(pair) for pair in self.recent],
            "waiting": [list(item) for item in self.waiting],
            "evaluations": [asdict(evaluation) for evaluation in self.evaluations],
            "kept": [list(item) for item in self.kept.items()],
            "rng": self._drawn.numpy(),
        }

    def restore(self, progress: Mapping) -> None:
        """Resume from what `progress` gave."""
        self.updates, self.games = progress["updates"], progress["games"]
        self.recent.extend(tuple(pair) for pair in progress["recent"])
        self.waiting = deque(tuple(item) for item in progress["waiting"])
        self.evaluations = [
            Evaluation(**{**values, "returns": tuple(values["returns"])})
            for values in progress["evaluations"]
        ]
        self.kept = dict(progress["kept"])
        # The options that say which checkpoints there are may have changed since.
        come = [evaluation.checkpoint_step for evaluation in self.evaluations]
        come += [step for step, _, _ in self.waiting]
        self.due = deque(step for step in self.due if step > max(come, default=-1))
        self._drawn = torch.from_numpy(np.array(progress["rng"]))
        self._rng.set_state(self._drawn)
