"""The learner's side of a training from pixels: replay buffer, updates and evaluations.

While the learner makes an update, a thread samples the next batch and computes its target values.
This gives a third of the work to a second core. The trainer can be saved and resumed, with the same
samples as without the interruption.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import torch

from goalreel.policies.pixel_network import SIDE
from goalreel.training.pixels.collector import END
from goalreel.training.pixels.frame_replay_buffer import FrameReplay, ReplayBatch
from goalreel.training.pixels.settings import PipelineSettings
from goalreel.training.shared_memory.ring import Ring
from goalreel.training.shared_memory.weights import Weights

_RECENT = 100  # games of the mean return
_SAVED = ("steps", "games", "recent", "waiting", "kept")


@dataclass(frozen=True)
class Evaluation:
    """The returns of greedy games with the weights of a checkpoint."""

    checkpoint_step: int  # decisions
    seconds: float  # of training before the checkpoint
    returns: list[float]  # one per game

    @property
    def mean(self) -> float:
        """The mean return."""
        return sum(self.returns) / len(self.returns)


class Trainer:
    """A learner, its replay buffer, and the counters of a training."""

    def __init__(self, settings: PipelineSettings, learner):
        """Create an empty buffer for a PixelLearner. Raises GoalreelError without enough memory."""
        self._settings, self.learner = settings, learner
        self.replay = FrameReplay(
            *(settings.n_envs, settings.buffer_size // settings.n_envs, (SIDE, SIDE)),
            *(settings.stack, settings.n_step, settings.gamma, learner.device),
        )
        self._rng = torch.Generator(self.replay.device).manual_seed(settings.seed)
        self._drawn = self._rng.get_state()  # before it drew the next batch
        self._ahead: Future | None = None
        self._thread = ThreadPoolExecutor(1)
        self.steps = self.games = 0  # decisions in the buffer so far, finished games
        self.recent: list[tuple[float, float]] = []  # return and distance of the latest games
        self.due = settings.checkpoint_steps  # in the future, increasing
        # Step, seconds and weights of past checkpoints without an evaluation.
        self.waiting: list[tuple[int, float, Weights]] = []
        self.evaluations: list[Evaluation] = []  # in order
        self.kept: dict[int, Weights] = {}  # of the chosen checkpoints, the best and the latest

    @property
    def samples(self) -> int:
        """The number of samples in all updates."""
        return self.learner.updates * self._settings.batch_size

    @property
    def learned_steps(self) -> int:
        """The number of decisions that the updates so far correspond to."""
        settings = self._settings
        learned = self.learner.updates * settings.train_freq // settings.gradient_steps
        return min(self.steps, settings.learning_starts + learned)

    def is_due(self) -> bool:
        """Return whether the decisions in the buffer require another update."""
        settings, updates = self._settings, self.learner.updates + 1
        needed = math.ceil(updates * settings.train_freq / settings.gradient_steps)
        return self.steps >= settings.learning_starts + needed

    def take_in(self, rings: Sequence[Ring]) -> int:
        """Move rows from rings to the buffer, up to the last decision; return their number."""
        if self._ahead:
            wait([self._ahead])  # it reads the buffer
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
        """Make an update; return whether the buffer held enough for it."""
        prepared = self._ahead.result() if self._ahead else self._prepared()
        self._ahead = None
        if prepared is None:
            return False
        self._drawn = self._rng.get_state()
        if self.learner.device.type == "cpu":  # a GPU computes asynchronously in any case
            self._ahead = self._thread.submit(self._prepared)
        before, every = self.learned_steps, self._settings.target_update_interval
        self.learner.learn(*prepared, self._settings.rate_left(before))
        if self.learned_steps // every > before // every:
            if self._ahead:
                wait([self._ahead])  # it reads the target network
            self.learner.update_target()
        return True

    def _prepared(self) -> tuple[ReplayBatch, torch.Tensor] | None:
        """Return a batch and its target values, None if the buffer holds too little."""
        batch = self.replay.sample(self._settings.batch_size, self._rng)
        return batch and (batch, self.learner.target_values(batch))

    def queue_checkpoints(self, decisions: int, seconds: float) -> None:
        """Queue the weights for evaluation if a checkpoint is reached."""
        while self.due and self.due[0] <= decisions:
            self.waiting.append((self.due.pop(0), seconds, self.learner.weights()))

    def evaluated(self, returns: list[float]) -> None:
        """Record the evaluation of the first waiting weights, and drop weights no longer needed."""
        step, seconds, weights = self.waiting.pop(0)
        self.evaluations.append(Evaluation(step, seconds, returns))
        self.kept[step] = weights
        needed = {*self._settings.checkpoints, self.best.checkpoint_step, step}
        self.kept = {step: weights for step, weights in self.kept.items() if step in needed}

    @property
    def best(self) -> Evaluation | None:
        """The evaluation with the highest mean, the earliest of equal ones."""
        return max(self.evaluations, key=lambda evaluation: evaluation.mean, default=None)

    def ended(self, games: Iterable[tuple[float, float]]) -> None:
        """Add finished games, each a return and a distance."""
        self.games += len(games)
        self.recent = [*self.recent, *games][-_RECENT:]

    def progress(self) -> dict:
        """Return the state apart from learner and buffer, as plain values and arrays."""
        progress = {name: getattr(self, name) for name in _SAVED} | {"rng": self._drawn.numpy()}
        return progress | {"evaluations": [vars(evaluation) for evaluation in self.evaluations]}

    def restore(self, progress: Mapping) -> None:
        """Restore the state that `progress` returned."""
        for name in _SAVED:
            setattr(self, name, progress[name])
        self.evaluations = [Evaluation(**values) for values in progress["evaluations"]]
        # The options of checkpoints may have changed in between.
        past = [evaluation.checkpoint_step for evaluation in self.evaluations]
        past += [step for step, _, _ in self.waiting]
        self.due = [step for step in self.due if step > max(past, default=-1)]
        self._drawn = torch.from_numpy(progress["rng"].copy())
        self._rng.set_state(self._drawn)
