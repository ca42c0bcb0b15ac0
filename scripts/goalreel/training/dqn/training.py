"""A training: play, learn, and look every 5,000 frames how good the policy is."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from goalreel.policies.network import Network
from goalreel.training.dqn.evaluation import Evaluation, evaluate
from goalreel.training.dqn.learner import Learner
from goalreel.training.dqn.log import Log
from goalreel.training.dqn.metrics import SOLVED
from goalreel.training.dqn.player_process import PlayerProcess
from goalreel.training.dqn.playing import Player, transitions
from goalreel.training.dqn.replay_buffer import StateReplay
from goalreel.training.dqn.settings import Settings

EVALUATE_EVERY = 5_000


@dataclass
class Trained:
    """What a training gives.

    seconds: of the clock, which runs from the very beginning and stands while a policy is
    evaluated; solved: frames and seconds to the first evaluation of SOLVED or better, None if
    there was none; weights: of each evaluation
    """

    log: Log
    frames: int = 0
    seconds: float = 0.0
    solved: tuple[int, float] | None = None
    evaluations: list[Evaluation] = field(default_factory=list)
    weights: list[dict[str, np.ndarray]] = field(default_factory=list)


class Clock:
    """Seconds of work."""

    def __init__(self):
        """Start it."""
        self._before, self._began = 0.0, time.perf_counter()

    @property
    def seconds(self) -> float:
        """What has run so far."""
        return self._before + time.perf_counter() - self._began

    def without(self, what: Callable, *arguments):
        """Return what a call returns, with the clock standing meanwhile."""
        before = self.seconds
        try:
            return what(*arguments)
        finally:
            self._before, self._began = before, time.perf_counter()


class Dues:
    """How often something is due that is due every so many frames."""

    def __init__(self, every: int, first: int = 0):
        """Begin at frame `first`."""
        self._every, self._next = every, first + every

    def passed(self, frame: int) -> int:
        """Return how many times it has become due up to `frame`, since it was asked last."""
        times = max(0, (frame - self._next) // self._every + 1)
        self._next += times * self._every
        return times


def train(settings: Settings, seed: int) -> Trained:
    """Train, on one thread; deterministic settings and a seed give the same weights, bit for bit.

    Learning is due by the frames that were played, whoever plays: the ratio of gradient steps to
    frames is that of the settings. Raises GoalreelError if a player's process ends.
    """
    clock = Clock()  # what a variant needs to begin, a process for one, is part of its time
    generator = np.random.default_rng(seed)
    learner = Learner(settings, seed)
    replay, log = StateReplay(settings.buffer), Log(settings.lanes)
    learning, targets, looks = (
        Dues(settings.train_every, settings.start),
        Dues(settings.target_every),
        Dues(EVALUATE_EVERY),
    )
    trained, frame = Trained(log), 0
    with player_of(settings, seed, learner, generator) as player:
        while frame < settings.frames:
            played = player.next()
            replay.append(transitions(played, settings.discount))
            frame += played.step.frames
            log.played(played.step, frame, clock.seconds, played.epsilon, played.waiting)
            if due := learning.passed(frame):
                for _ in range(due * settings.gradient_steps):
                    log.learned(learner.learn(replay.sample(settings.batch, generator)))
                player.learned(learner.weights)
            if targets.passed(frame):
                learner.update_target()
            if looks.passed(frame) or frame >= settings.frames:
                with player.resting():
                    clock.without(look, trained, learner, frame, clock.seconds)
        trained.frames, trained.seconds = frame, clock.seconds
    return trained


def player_of(
    settings: Settings, seed: int, learner: Learner, generator: np.random.Generator
) -> Player | PlayerProcess:
    """Return who plays in a training; a context manager."""
    if settings.parallel:
        return PlayerProcess(settings, seed, learner.weights())
    return Player(settings, seed, learner.values, generator)


def look(trained: Trained, learner: Learner, frame: int, seconds: float) -> None:
    """Evaluate the policy and keep its weights."""
    weights = learner.weights()
    found = evaluate(Network.of(weights).act, frame, seconds)
    trained.evaluations.append(found)
    trained.weights.append(weights)
    if trained.solved is None and found.mean >= SOLVED:
        trained.solved = frame, seconds
