"""The learning side of a training from pixels: when to learn, from what, and what to keep.

While the learner makes an update, a thread draws the next one's samples and has the target network
evaluate them: a third of the work, for a second core. The state can be saved, and resumed sample by
sample.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np
import torch

from goalreel.policies.pixel_network import SIDE
from goalreel.training.pixels.collector import END
from goalreel.training.pixels.frame_replay_buffer import FrameReplay, ReplayBatch
from goalreel.training.pixels.settings import PipelineSettings
from goalreel.training.shared_memory.ring import Ring

_RECENT = 100  # games that a mean is taken over
_SAVED = ("steps", "games", "recent", "waiting", "kept")

Weights = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Evaluation:
    """The returns of greedy games by the weights after some training."""

    checkpoint_step: int  # decisions
    seconds: float  # of training, when the weights were taken
    returns: list[float]  # of each game

    @property
    def mean(self) -> float:
        """The mean return."""
        return sum(self.returns) / len(self.returns)


class Trainer:
    """A learner, its replay buffer, and the counters of a training.

    Attributes:
        learner: a learner.PixelLearner.
        replay: the buffer.
        steps: decisions that were taken into the buffer.
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
        self.replay = FrameReplay(
            *(settings.n_envs, settings.buffer_size // settings.n_envs, (SIDE, SIDE)),
            *(settings.stack, settings.n_step, settings.gamma, learner.device),
        )
        self._rng = torch.Generator(self.replay.device).manual_seed(settings.seed)
        self._drawn = self._rng.get_state()  # before the samples that are drawn ahead
        self._ahead: Future | None = None
        self._thread = ThreadPoolExecutor(1)
        self.steps = self.games = 0
        self.recent: list[tuple[float, float]] = []
        self.due = settings.checkpoint_steps
        self.waiting: list[tuple[int, float, Weights]] = []
        self.evaluations: list[Evaluation] = []
        self.kept: dict[int, Weights] = {}

    @property
    def samples(self) -> int:
        """All samples that were learned from."""
        return self.learner.updates * self._settings.batch_size

    @property
    def learned_steps(self) -> int:
        """The decisions whose share of updates is made."""
        settings = self._settings
        learned = self.learner.updates * settings.train_freq // settings.gradient_steps
        return min(self.steps, settings.learning_starts + learned)

    def is_due(self) -> bool:
        """Return whether an update is due after the decisions that were taken in."""
        settings = self._settings
        needed = math.ceil(
            (self.learner.updates + 1) * settings.train_freq / settings.gradient_steps
        )
        return self.steps >= settings.learning_starts + needed

    def take_in(self, rings: Sequence[Ring]) -> int:
        """Move what rings hold into the buffer, up to the last decision; return the rows moved."""
        if self._ahead:
            wait([self._ahead])  # which reads the buffer
        moved, num_envs = 0, self._settings.envs_per_collector
        for number, ring in enumerate(rings):
            rows = ring.items(self._settings.total_timesteps - self.steps)
            if count := len(rows["env"]):
                self.replay.append(rows, number * num_envs)
                self.steps += int((rows["action"] != END).sum())
                ring.release(count)
                moved += count
        return moved

    def update(self) -> bool:
        """Learn once; return whether there was enough in the buffer to do so."""
        prepared = self._ahead.result() if self._ahead else self._prepared()
        self._ahead = None
        if prepared is None:
            return False
        self._drawn = self._rng.get_state()
        if self.learner.device.type == "cpu":  # a GPU computes beside this thread in any case
            self._ahead = self._thread.submit(self._prepared)
        before, every = self.learned_steps, self._settings.target_update_interval
        self.learner.learn(*prepared, self._settings.rate_left(before))
        if self.learned_steps // every > before // every:
            if self._ahead:
                wait([self._ahead])  # which reads the target network
            self.learner.update_target()
        return True

    def _prepared(self) -> tuple[ReplayBatch, torch.Tensor] | None:
        """Return what the learner takes for an update, None if the buffer holds too little."""
        batch = self.replay.sample(self._settings.batch_size, self._rng)
        return batch and (batch, self.learner.target_values(batch))

    def queue_checkpoints(self, decisions: int, seconds: float) -> None:
        """Queue the weights for evaluation at each checkpoint that has come."""
        while self.due and self.due[0] <= decisions:
            self.waiting.append((self.due.pop(0), seconds, self.learner.weights()))

    def evaluated(self, returns: list[float]) -> None:
        """Record the games of the first weights that wait, and keep these if they are needed."""
        step, seconds, weights = self.waiting.pop(0)
        self.evaluations.append(Evaluation(step, seconds, returns))
        self.kept[step] = weights
        needed = {*self._settings.checkpoints, self.best.checkpoint_step, step}
        self.kept = {step: weights for step, weights in self.kept.items() if step in needed}

    @property
    def best(self) -> Evaluation | None:
        """The evaluation of the highest mean, the earliest of equal ones."""
        return max(self.evaluations, key=lambda evaluation: evaluation.mean, default=None)

    def ended(self, games: Iterable[tuple[float, float]]) -> None:
        """Add games that have ended: return, distance."""
        self.games += len(games)
        self.recent = [*self.recent, *games][-_RECENT:]

    def progress(self) -> dict:
        """Return what to save beside the learner and the buffer: plain values and arrays."""
        return {
            **{name: getattr(self, name) for name in _SAVED},
            "evaluations": [vars(evaluation) for evaluation in self.evaluations],
            "rng": self._drawn.numpy(),
        }

    def restore(self, progress: Mapping) -> None:
        """Resume from what `progress` gave."""
        for name in _SAVED:
            setattr(self, name, progress[name])
        self.evaluations = [Evaluation(**values) for values in progress["evaluations"]]
        # The options that say which checkpoints there are may have changed since.
        come = [evaluation.checkpoint_step for evaluation in self.evaluations]
        come += [step for step, _, _ in self.waiting]
        self.due = [step for step in self.due if step > max(come, default=-1)]
        self._drawn = torch.from_numpy(progress["rng"].copy())
        self._rng.set_state(self._drawn)
