"""Train by deep Q-learning: play, learn, evaluate every 500 decisions, stop when solved."""

import time
from dataclasses import dataclass

import numpy as np

from goalreel.environments.mountain_car import DISCRETE, observations, reset
from goalreel.policies.network import Network
from goalreel.training.dqn.learner import Learner
from goalreel.training.dqn.playing import StateReplay, choose, epsilon_at, transitions
from goalreel.training.dqn.settings import Settings
from goalreel.training.games.car_envs import Cars, WrappedCars

SOLVED = -110.0  # the mean return of 100 episodes at which Gymnasium calls the environment solved
EVALUATE_EVERY = 500  # decisions
EPISODES = 100  # per evaluation
_FIRST_SEED = 10_000  # of evaluations, so that trainings with small seeds have different ones
COLUMNS = ("decisions", "frames", "seconds", "return", "loss", "epsilon")


@dataclass(frozen=True)
class Metrics:
    """The metrics of a training."""

    decisions: int  # of all environments
    frames: int  # environment steps
    seconds: float  # wall-clock time without evaluations
    cpu_seconds: float  # CPU time without evaluations
    checkpoints: tuple[int, ...]  # decisions before each evaluation
    means: tuple[float, ...]  # mean return of each evaluation

    @property
    def solved(self) -> bool:
        """Whether the training solved the environment."""
        return self.means[-1] >= SOLVED

    def __str__(self) -> str:
        """Return a summary in one line."""
        return (
            f"{'' if self.solved else 'not '}solved in {self.decisions:,} decisions "
            f"({self.frames:,} frames), {self.seconds:.1f} s; mean return {self.means[-1]:.1f}"
        )


@dataclass(frozen=True)
class Trained:
    """The result of a training."""

    metrics: Metrics
    weights: tuple[dict[str, np.ndarray], ...]  # at each evaluation
    episodes: list[tuple]  # a row of COLUMNS for each complete episode


def train(settings: Settings, seed: int) -> Trained:
    """Train on one thread; the same settings and seed give the same weights, bit for bit."""
    rng = np.random.default_rng(seed)
    learner, replay = Learner(settings, seed), StateReplay(settings.buffer_size)
    kind = WrappedCars if settings.wrapped else Cars
    cars = kind(seed, settings.n_envs, settings.frame_skip)
    obs = cars.obs
    decisions, frames, returns, loss = 0, 0, np.zeros(settings.n_envs), ""
    checkpoints, means, weights, episodes = [], [], [], []
    began = _clocks()  # after the first reset, which imports parts of Gymnasium
    while decisions < settings.total_timesteps and not (means and means[-1] >= SOLVED):
        epsilon = epsilon_at(settings, decisions)
        actions = choose(learner.values, obs, epsilon, rng)
        step = cars.step(actions)
        replay.append(transitions(obs, actions, step, settings.gamma))
        obs = step.obs
        before, decisions = decisions, decisions + settings.n_envs
        frames += int(step.lasted.sum())
        returns += step.rewards
        for index in np.flatnonzero(step.terminated | step.truncated):
            seconds = float((_clocks() - began)[0])
            episodes.append((decisions, frames, seconds, float(returns[index]), loss, epsilon))
            returns[index] = 0.0
        if decisions > settings.learning_starts:
            for _ in range(times(before, decisions, settings.train_freq)):
                loss = learner.learn(replay.sample(settings.batch_size * settings.train_freq, rng))
        if times(before, decisions, settings.target_update_interval):
            learner.update_target()
        if times(before, decisions, EVALUATE_EVERY) or decisions >= settings.total_timesteps:
            stopped = _clocks()
            checkpoints.append(decisions)
            weights.append(learner.weights())
            means.append(float(evaluate(Network.of(weights[-1]).act).mean()))
            began += _clocks() - stopped
    seconds, cpu_seconds = (_clocks() - began).tolist()
    metrics = Metrics(decisions, frames, seconds, cpu_seconds, tuple(checkpoints), tuple(means))
    return Trained(metrics, tuple(weights), episodes)


def _clocks() -> np.ndarray:
    """Return the seconds of wall-clock time and of CPU time."""
    return np.array([time.perf_counter(), time.process_time()])


def times(before: int, after: int, every: int) -> int:
    """Return how many multiples of `every` are above `before` and up to `after`."""
    return after // every - before // every


def evaluate(act) -> np.ndarray:
    """Play episodes of fixed seeds in one batch, and return their returns, (EPISODES,) float64.

    `act` takes (n, 2) float32 observations, and returns (n,) int8 actions, one per frame.
    """
    state = reset(_FIRST_SEED + np.arange(EPISODES))
    returns, going = np.zeros(EPISODES), np.arange(EPISODES)
    for _ in range(DISCRETE.max_episode_steps):
        state, rewards, terminated = DISCRETE.step(state, act(observations(state)))
        returns[going] += rewards
        state, going = state[:, ~terminated], going[~terminated]
    return returns
