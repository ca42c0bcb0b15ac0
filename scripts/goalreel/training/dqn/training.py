"""A training: play, learn, evaluate the policy every 5,000 frames, and log all of it."""

import csv
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from goalreel.environments.physics import DISCRETE, reset
from goalreel.files.atomic import replacing
from goalreel.policies.network import Network
from goalreel.training.dqn.learner import Learner
from goalreel.training.dqn.metrics import SOLVED
from goalreel.training.dqn.player_process import PlayerProcess
from goalreel.training.dqn.playing import Played, Player, StateReplay, transitions
from goalreel.training.dqn.settings import Settings

EVALUATE_EVERY = 5_000
EPISODES = 100  # of an evaluation
_FIRST_SEED = 10_000  # of evaluations: far from any that a training is likely to name
COLUMNS = ("kind", "seconds", "frames", "fps", "episode", "steps", "return", "loss", "epsilon",
           "queue", "drops")  # fmt: skip


@dataclass(frozen=True)
class Evaluation:
    """Of the policy after some training."""

    frames: int  # of training
    seconds: float  # of training
    mean: float  # return


class Log:
    """A row for each episode, and one for each second of the clock."""

    def __init__(self, lanes: int):
        """Begin with no rows."""
        self.rows: list[tuple] = []
        self._returns, self._steps = np.zeros(lanes), np.zeros(lanes, np.int64)
        self._losses: list[float] = []
        self._second, self._frames, self._episodes = 0.0, 0, 0

    def learned(self, loss: float) -> None:
        """Add a gradient step."""
        self._losses.append(loss)

    def played(self, played: Played, frame: int, seconds: float) -> None:
        """Add a step of all lanes, which ended at `frame`."""
        step = played.step
        self._returns += step.rewards
        self._steps += step.lasted
        for lane in np.flatnonzero(step.terminated | step.truncated):
            self._episodes += 1
            row = (self._episodes, int(self._steps[lane]), float(self._returns[lane]))
            self._add("episode", seconds, frame, row, played)
            self._returns[lane], self._steps[lane] = 0.0, 0
        if seconds - self._second >= 1.0:
            self._add("second", seconds, frame, ("", "", ""), played)
            self._second, self._frames, self._losses = seconds, frame, []

    def _add(self, kind: str, seconds: float, frame: int, row: tuple, played: Played) -> None:
        passed = seconds - self._second
        fps = (frame - self._frames) / passed if passed > 0 else 0.0
        loss = sum(self._losses) / len(self._losses) if self._losses else ""
        # Nothing is dropped: the player waits.
        self.rows.append((kind, seconds, frame, fps, *row, loss, played.epsilon, played.waiting, 0))

    def write(self, path: Path) -> None:
        """Write the log as CSV."""
        with replacing(path) as temporary, temporary.open("w", newline="") as stream:
            csv.writer(stream, lineterminator="\n").writerows([COLUMNS, *self.rows])


@dataclass
class Trained:
    """The outcome of a training."""

    log: Log
    frames: int = 0
    seconds: float = 0.0  # of the clock, which stops while a policy is evaluated
    solved: tuple[int, float] | None = None  # frames, seconds to the first evaluation of SOLVED
    evaluations: list[Evaluation] = field(default_factory=list)
    weights: list[dict[str, np.ndarray]] = field(default_factory=list)  # at each evaluation


class Clock:
    """Seconds of work, from its making on."""

    def __init__(self):
        """Start it."""
        self._before, self._began = 0.0, time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds so far."""
        return self._before + time.perf_counter() - self._began

    def without(self, call: Callable, *arguments):
        """Return what a call returns; the time it takes is not counted."""
        before = self.seconds
        try:
            return call(*arguments)
        finally:
            self._before, self._began = before, time.perf_counter()


class Dues:
    """How often something is due that is due every so many frames."""

    def __init__(self, every: int, first: int = 0):
        """Begin at frame `first`."""
        self._every, self._next = every, first + every

    def passed(self, frame: int) -> int:
        """Return how many times it has become due up to `frame`, since the last call."""
        times = max(0, (frame - self._next) // self._every + 1)
        self._next += times * self._every
        return times


def train(settings: Settings, seed: int) -> Trained:
    """Train, on one thread; deterministic settings and a seed give the same weights, bit for bit.

    Learning is due by the frames that were played, whoever plays: the ratio of gradient steps to
    frames is that of the settings. Raises GoalreelError if a player's process ends.
    """
    clock = Clock()  # what a variant needs to begin, a process for one, is part of its time
    rng = np.random.default_rng(seed)
    learner = Learner(settings, seed)
    replay, log = StateReplay(settings.buffer), Log(settings.lanes)
    learning, targets, evaluations = (
        Dues(settings.train_every, settings.start),
        Dues(settings.target_every),
        Dues(EVALUATE_EVERY),
    )
    trained, frame = Trained(log), 0
    with (
        PlayerProcess(settings, seed, learner.weights())
        if settings.parallel
        else Player(settings, seed, learner.values, rng)
    ) as player:
        while frame < settings.frames:
            played = player.next()
            replay.append(transitions(played, settings.discount))
            frame += played.step.frames
            log.played(played, frame, clock.seconds)
            if due := learning.passed(frame):
                for _ in range(due * settings.gradient_steps):
                    log.learned(learner.learn(replay.sample(settings.batch, rng)))
                player.learned(learner.weights)
            if targets.passed(frame):
                learner.update_target()
            if evaluations.passed(frame) or frame >= settings.frames:
                with player.resting():
                    clock.without(_evaluate, trained, learner, frame, clock.seconds)
        trained.frames, trained.seconds = frame, clock.seconds
    return trained


def _evaluate(trained: Trained, learner: Learner, frame: int, seconds: float) -> None:
    """Evaluate the policy and keep its weights."""
    weights = learner.weights()
    evaluation = Evaluation(frame, seconds, float(evaluate(Network.of(weights).act).mean()))
    trained.evaluations.append(evaluation)
    trained.weights.append(weights)
    if trained.solved is None and evaluation.mean >= SOLVED:
        trained.solved = frame, seconds


def evaluate(act, episodes: int = EPISODES) -> np.ndarray:
    """Play fixed seeds, all at once, and return the returns, (episodes,) float64.

    `act` gives (n, 2) float32 observations their actions, (n,) int8, one for each frame.
    """
    state = reset(_FIRST_SEED + np.arange(episodes))
    returns, open_ = np.zeros(episodes), np.arange(episodes)
    for _ in range(DISCRETE.max_steps):
        state, rewards, terminated = DISCRETE.step(state, act(state.observations()))
        returns[open_] += rewards
        going = ~terminated
        state, open_ = state.take(going), open_[going]
        if not len(open_):
            break
    return returns
