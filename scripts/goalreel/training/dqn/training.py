"""A training: play, learn, evaluate the policy every 500 decisions, and end when it has solved."""

import os
import time
from dataclasses import dataclass

import numpy as np

from goalreel.environments.mountain_car import DISCRETE, observations, reset
from goalreel.policies.network import Network
from goalreel.training.dqn.learner import Learner
from goalreel.training.dqn.metrics import SOLVED, Metrics
from goalreel.training.dqn.playing import StateReplay, choose, epsilon_at, transitions
from goalreel.training.dqn.settings import Settings
from goalreel.training.games.car_envs import Cars, WrappedCars

EVALUATE_EVERY = 500  # decisions
EPISODES = 100  # of an evaluation
_FIRST_SEED = 10_000  # of evaluations: far from any that a training is likely to name
COLUMNS = ("decisions", "frames", "seconds", "return", "loss", "epsilon")


@dataclass(frozen=True)
class Trained:
    """The outcome of a training."""

    metrics: Metrics
    weights: tuple[dict[str, np.ndarray], ...]  # at each evaluation
    episodes: list[tuple]  # rows of COLUMNS, one for each episode that was played to its end


def train(settings: Settings, variant: str, seed: int) -> Trained:
    """Train, on one thread; the same settings and seed give the same weights, bit for bit."""
    rng = np.random.default_rng(seed)
    learner, replay = Learner(settings, seed), StateReplay(settings.buffer_size)
    kind = WrappedCars if settings.wrapped else Cars
    cars = kind(seed, settings.n_envs, settings.frame_skip)
    obs = cars.obs
    decisions, frames, returns, loss = 0, 0, np.zeros(settings.n_envs), ""
    checkpoints, means, weights, episodes = [], [], [], []
    began = _clocks()  # not before: PyTorch and Gymnasium are imported in parts when they are used
    while decisions < settings.total_timesteps and not (means and means[-1] >= SOLVED):
        epsilon = epsilon_at(settings, decisions)
        actions = choose(learner.values, obs, epsilon, rng)
        step = cars.step(actions)
        replay.append(transitions(obs, actions, step, settings.gamma))
        obs = step.obs
        before, decisions = decisions, decisions + settings.n_envs
        frames += step.frames
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
    metrics = Metrics(
        *(variant, seed, decisions, frames, *(_clocks() - began).tolist()),
        *(os.getloadavg()[0], len(os.sched_getaffinity(0)), tuple(checkpoints), tuple(means)),
    )
    return Trained(metrics, tuple(weights), episodes)


def _clocks() -> np.ndarray:
    """Return seconds of the clock and of the CPU."""
    return np.array([time.perf_counter(), time.process_time()])


def times(before: int, after: int, every: int) -> int:
    """Return how often something is due between two counts that is due at each `every`th."""
    return after // every - before // every


def evaluate(act, episodes: int = EPISODES) -> np.ndarray:
    """Play fixed seeds, all at once, and return the returns, (episodes,) float64.

    `act` gives (n, 2) float32 observations their actions, (n,) int8, one for each frame.
    """
    state = reset(_FIRST_SEED + np.arange(episodes))
    returns, going = np.zeros(episodes), np.arange(episodes)
    for _ in range(DISCRETE.max_episode_steps):
        state, rewards, terminated = DISCRETE.step(state, act(observations(state)))
        returns[going] += rewards
        state, going = state[:, ~terminated], going[~terminated]
    return returns
