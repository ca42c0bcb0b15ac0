"""Plain deep Q-learning on Pong: the loop of CleanRL's dqn_atari.

Like CleanRL, it uses the wrappers and the replay buffer of Stable-Baselines3. Other settings give
it ale-py's AtariVectorEnv. The layers of the network are those
of goalreel, as in all rows.
"""

import copy
import time
from collections import deque
from dataclasses import dataclass, replace

import ale_py
import gymnasium
import numpy as np
import torch
from ale_py.vector_env import AtariVectorEnv
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import FrameStackObservation
from stable_baselines3.common.atari_wrappers import AtariWrapper
from stable_baselines3.common.buffers import ReplayBuffer
from torch import nn

from benchmarks.harness import available_cores
from benchmarks.training.pong import GAME, LATEST, STICKY
from goalreel.policies.torch_network import NETWORKS, make_body

SIDE, ACTIONS = 84, 6  # of a frame, and of Pong
gymnasium.register_envs(ale_py)


@dataclass(frozen=True)
class Settings:
    """Settings, by default those of the book that book.py names, with an update per 4 decisions."""

    envs: int = 1
    vector: bool = False  # ale-py's AtariVectorEnv, or Stable-Baselines3's AtariWrapper
    cheap: bool = False  # AtariVectorEnv without no-ops and maximum, stacks of two frames
    network: str = "nature"
    batch: int = 32
    decisions: int = 4  # per update
    no_grad: bool = True  # acting and targets without a graph for gradients
    fused: bool = False  # PyTorch's fused Adam
    target_every: int = 1000  # updates
    buffer: int = 100_000
    start: int = 10_000  # decisions before the first update
    exploration: int = 100_000  # decisions over which epsilon falls from 1
    epsilon: float = 0.02  # the last

    @property
    def stack(self) -> int:  # frames of an observation
        return 2 if self.cheap else 4


def make_envs(settings: Settings) -> VectorEnv:
    """Return environments that reset in the step that ends an episode.

    An observation is (stack, 84, 84) uint8. AtariWrapper adds one more axis at the end.
    """
    if settings.vector:
        others = {"maxpool": False, "noop_max": 0} if settings.cheap else {}
        others |= {"stack_num": settings.stack, "repeat_action_probability": STICKY}
        others |= {"num_threads": 1, "autoreset_mode": "SameStep"}
        return AtariVectorEnv("pong", settings.envs, **others)

    def make() -> gymnasium.Env:
        env = gymnasium.make(GAME, frameskip=1, repeat_action_probability=STICKY)
        return FrameStackObservation(AtariWrapper(env), settings.stack)

    return SyncVectorEnv([make] * settings.envs, autoreset_mode=AutoresetMode.SAME_STEP)


class Learner:
    """A network, its target, its optimizer and its replay buffer."""

    def __init__(self, settings: Settings, seed: int):
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - of ReplayBuffer
        self._settings, self.updates = settings, 0
        shape, features = (settings.stack, SIDE, SIDE), NETWORKS[settings.network][1]
        body = make_body(shape, settings.network)
        self._network = nn.Sequential(body, nn.Linear(features, ACTIONS))
        self._target = copy.deepcopy(self._network)
        self._optimizer = torch.optim.Adam(self._network.parameters(), 1e-4, fused=settings.fused)
        spaces = gymnasium.spaces.Box(0, 255, shape, np.uint8), gymnasium.spaces.Discrete(ACTIONS)
        self.replay = ReplayBuffer(
            *(settings.buffer, *spaces, "cpu", settings.envs),
            **{"optimize_memory_usage": True, "handle_timeout_termination": False},
        )

    def act(self, stacks: np.ndarray) -> np.ndarray:
        with torch.set_grad_enabled(not self._settings.no_grad):
            values = self._network(torch.from_numpy(stacks) / 255.0)
        return values.detach().numpy().argmax(axis=1)

    def update(self) -> None:
        settings, batch = self._settings, self.replay.sample(self._settings.batch)
        values = self._network(batch.observations / 255.0).gather(1, batch.actions)
        with torch.set_grad_enabled(not settings.no_grad):
            best = self._target(batch.next_observations / 255.0).amax(dim=1, keepdim=True)
            expected = batch.rewards + 0.99 * (1 - batch.dones) * best
        loss = nn.functional.mse_loss(values, expected.detach())
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
        self.updates += 1
        if self.updates % settings.target_every == 0:
            self._target.load_state_dict(self._network.state_dict())


def use_fastest_threads(settings: Settings) -> None:
    """Set PyTorch's threads to one or all cores, whichever makes updates faster."""
    learner, count = Learner(replace(settings, buffer=64 * settings.envs), 0), settings.envs
    stacks, zeros = np.zeros((count, settings.stack, SIDE, SIDE), np.uint8), np.zeros(count)
    for _ in range(50):
        learner.replay.add(stacks, stacks, zeros, zeros, zeros, [])
    seconds = {}
    for threads in {1, available_cores()}:
        torch.set_num_threads(threads)
        learner.update()
        began = time.perf_counter()
        for _ in range(max(512 // settings.batch, 2)):
            learner.update()
        seconds[threads] = time.perf_counter() - began
    torch.set_num_threads(min(seconds, key=seconds.get))


def train(settings: Settings, clock, seed: int = 1) -> None:
    """Train as long as `clock.going`, see pong.goalreel."""
    use_fastest_threads(settings)
    learner, rng, count = Learner(settings, seed), np.random.default_rng(seed), settings.envs
    envs, shape = make_envs(settings), (count, settings.stack, SIDE, SIDE)
    obs = envs.reset(seed=seed)[0].reshape(shape)
    decisions, sums, returns = 0, np.zeros(count), deque(maxlen=LATEST)
    while clock.going(decisions, returns, learner.act):
        actions = rng.integers(ACTIONS, size=count)
        epsilon = max(settings.epsilon, 1 - decisions / max(settings.exploration, 1))
        if (greedy := rng.random(count) >= epsilon).any():
            actions = np.where(greedy, learner.act(obs), actions)
        seen, rewards, terminated, truncated, _ = envs.step(actions)
        next_obs, ended = seen.reshape(shape).copy(), terminated | truncated
        learner.replay.add(obs, next_obs, actions, rewards, ended, [])
        obs, decisions = next_obs, decisions + count
        sums += rewards
        returns += sums[ended].tolist()
        sums[ended] = 0
        while learner.updates < (decisions - settings.start) // settings.decisions:
            learner.update()


def greedy_returns(act, games: int = 30) -> np.ndarray:
    """Return the returns of greedy games from fixed seeds, (games,)."""
    envs = make_envs(Settings(envs=games, vector=True))
    obs, _ = envs.reset(seed=1000)
    returns, over = np.zeros(games), np.zeros(games, bool)
    while not over.all():
        obs, rewards, terminated, truncated, _ = envs.step(act(obs))
        returns += np.where(over, 0, rewards)
        over |= terminated | truncated
    envs.close()
    return returns
