"""Plain deep Q-learning on Pong, with only PyTorch, NumPy and the usual environments.

peers.py and book.py compose goalreel's contenders from these parts: environments, network, replay
buffer, update, and two loops. One loop runs in a single process. The other one plays in a process
of its own. No part uses goalreel.
"""

import copy
import math
import os
import time
from collections import deque
from dataclasses import dataclass, replace

import ale_py
import gymnasium
import numpy as np
import torch
import torch.multiprocessing
from ale_py.vector_env import AtariVectorEnv
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import FrameStackObservation
from torch import nn

GAME, FRAME_SKIP, SIDE = "ALE/Pong-v5", 4, 84
# Filters, kernel and stride of each convolution, and the hidden layer's units.
NETWORKS = {
    "nature": (((32, 8, 4), (64, 4, 2), (64, 3, 1)), 512),  # V. Mnih et al., 2015
    "small": (((16, 8, 4), (32, 4, 2)), 256),  # V. Mnih et al., 2013
}
gymnasium.register_envs(ale_py)


@dataclass(frozen=True)
class Settings:
    """Settings, by default those of Stable-Baselines3's and CleanRL's DQN for Atari."""

    envs: int = 1
    vector: bool = False  # ale-py's AtariVectorEnv, or Stable-Baselines3's AtariWrapper
    cheap: bool = False  # AtariVectorEnv without no-ops and maximum, stacks of two frames
    network: str = "nature"
    batch: int = 32
    decisions: int = 4  # per update
    free: bool = False  # another process plays, and the learner updates as often as it can
    no_grad: bool = True  # acting and targets without a graph for gradients
    fused: bool = False  # PyTorch's fused Adam
    learning_rate: float = 1e-4
    discount: float = 0.99
    target_every: int = 1000  # updates
    buffer: int = 100_000
    start: int = 10_000  # decisions before the first update
    exploration: int = 100_000  # decisions over which epsilon falls from 1
    epsilon: float = 0.02  # the last

    @property
    def stack(self) -> int:  # frames of an observation
        return 2 if self.cheap else 4

    def epsilon_after(self, decisions: int) -> float:
        """Return the share of random actions after some decisions."""
        return max(self.epsilon, 1 - decisions / max(self.exploration, 1))


def make_envs(settings: Settings, seed: int) -> VectorEnv:
    """Return environments without sticky actions that reset in the step that ends an episode.

    An observation is (stack, 84, 84) uint8. AtariWrapper adds one more axis at the end.
    """
    if settings.vector:
        cheap = {"maxpool": False, "noop_max": 0, "stack_num": settings.stack}
        others = cheap if settings.cheap else {}
        envs = AtariVectorEnv(
            "pong", settings.envs, num_threads=1, autoreset_mode="SameStep", **others
        )
    else:
        makers = [lambda: wrapped(settings.stack)] * settings.envs
        envs = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)
    envs.reset(seed=seed)
    return envs


def wrapped(stack: int) -> gymnasium.Env:
    """Return Pong in Stable-Baselines3's wrappers."""
    from stable_baselines3.common.atari_wrappers import AtariWrapper

    env = gymnasium.make(GAME, frameskip=1, repeat_action_probability=0.0)
    return FrameStackObservation(AtariWrapper(env), stack)


class QNetwork(nn.Module):
    """A convolutional network with one hidden layer: (n, stack, 84, 84) uint8 to action values."""

    def __init__(self, name: str, stack: int, actions: int):
        super().__init__()
        convolutions, hidden = NETWORKS[name]
        layers, channels, side = [], stack, SIDE
        for filters, kernel, stride in convolutions:
            layers += [nn.Conv2d(channels, filters, kernel, stride), nn.ReLU()]
            channels, side = filters, (side - kernel) // stride + 1
        flat = channels * side * side
        layers += [nn.Flatten(), nn.Linear(flat, hidden), nn.ReLU(), nn.Linear(hidden, actions)]
        self.layers = nn.Sequential(*layers)

    def forward(self, stacks: torch.Tensor) -> torch.Tensor:
        return self.layers(stacks / 255.0)


class Replay:
    """The latest steps of environments side by side, with each frame stored once."""

    def __init__(self, settings: Settings):
        self._rows, envs = settings.buffer // settings.envs, settings.envs
        self._stack, self.count = settings.stack, 0  # rows appended so far
        self._frames = np.zeros((self._rows, envs, SIDE, SIDE), np.uint8)
        self._actions = np.zeros((self._rows, envs), np.int64)
        self._rewards = np.zeros((self._rows, envs), np.float32)
        self._ended = np.zeros((self._rows, envs), bool)
        self._ages = np.zeros((self._rows, envs), np.int64)  # steps since the reset
        self._age = np.zeros(envs, np.int64)

    def append(self, obs: np.ndarray, actions, rewards, ended: np.ndarray) -> None:
        row = self.count % self._rows
        self._frames[row] = obs[:, -1]
        self._actions[row], self._rewards[row], self._ended[row] = actions, rewards, ended
        self._ages[row] = self._age
        self._age = np.where(ended, 0, self._age + 1)
        self.count += 1

    def sample(self, batch: int, rng: np.random.Generator) -> tuple[torch.Tensor, ...]:
        oldest = max(self.count - self._rows, 0) + self._stack - 1
        steps = rng.integers(oldest, self.count - 1, size=batch)
        envs = rng.integers(self._actions.shape[1], size=batch)
        at = steps % self._rows, envs
        columns = (self._stacks(steps, envs), self._actions[at], self._rewards[at], self._ended[at])
        return tuple(map(torch.from_numpy, (*columns, self._stacks(steps + 1, envs))))

    def _stacks(self, steps: np.ndarray, envs: np.ndarray) -> np.ndarray:
        back = np.arange(self._stack - 1, -1, -1)
        back = np.minimum(back, self._ages[steps % self._rows, envs][:, None])
        return self._frames[(steps[:, None] - back) % self._rows, envs[:, None]]


class Player:
    """Environments that a network plays, and the returns of their latest 20 games."""

    def __init__(self, settings: Settings, network: QNetwork, seed: int):
        self._settings, self._network = settings, network
        self._envs, self._rng = make_envs(settings, seed), np.random.default_rng(seed)
        self._obs = self._shaped(self._envs.reset()[0])
        self._sums = np.zeros(settings.envs)
        self.decisions, self.returns = 0, deque(maxlen=20)

    def _shaped(self, obs: np.ndarray) -> np.ndarray:
        return obs.reshape(-1, self._settings.stack, SIDE, SIDE)

    def step(self, decisions: int) -> tuple[np.ndarray, ...]:
        """Act once in all environments, with epsilon after `decisions`.

        Return the arguments of Replay.append.
        """
        settings, obs, envs = self._settings, self._obs, self._settings.envs
        random = self._rng.random(envs) < settings.epsilon_after(decisions)
        actions = self._rng.integers(int(self._envs.single_action_space.n), size=envs)
        if not random.all():
            with torch.set_grad_enabled(not settings.no_grad):
                values = self._network(torch.from_numpy(obs))
            actions = np.where(random, actions, values.detach().numpy().argmax(axis=1))
        next_obs, rewards, terminated, truncated, _ = self._envs.step(actions)
        self._obs, ended = self._shaped(next_obs), terminated | truncated
        self._sums += rewards
        self.returns += self._sums[ended].tolist()
        self._sums[ended] = 0
        self.decisions += envs
        return obs, actions, rewards, ended


class Learner:
    """A network, its target and its optimizer."""

    def __init__(self, settings: Settings, seed: int):
        torch.manual_seed(seed)
        self._settings, self._rng, self.updates = settings, np.random.default_rng(seed), 0
        self.network = QNetwork(settings.network, settings.stack, 6)  # actions of Pong
        self._target = copy.deepcopy(self.network)
        self._optimizer = torch.optim.Adam(
            self.network.parameters(), lr=settings.learning_rate, fused=settings.fused
        )

    def update(self, replay: Replay) -> None:
        settings = self._settings
        obs, actions, rewards, ended, next_obs = replay.sample(settings.batch, self._rng)
        values = self.network(obs).gather(1, actions[:, None])[:, 0]
        with torch.set_grad_enabled(not settings.no_grad):
            best = self._target(next_obs).amax(dim=1).masked_fill(ended, 0.0)
        loss = nn.functional.mse_loss(values, rewards + settings.discount * best.detach())
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
        self.updates += 1
        if self.updates % settings.target_every == 0:
            self._target.load_state_dict(self.network.state_dict())


def use_fastest_threads(settings: Settings) -> None:
    """Set PyTorch's threads to one or all cores, whichever is faster. A player leaves it one."""
    cores = {1} if settings.free else {1, len(os.sched_getaffinity(0))}
    learner, replay = Learner(settings, 0), Replay(replace(settings, buffer=100 * settings.envs))
    step = np.zeros((settings.envs, settings.stack, SIDE, SIDE), np.uint8), 0, 0, False
    for _ in range(50):
        replay.append(*step)
    seconds = {}
    for threads in cores:
        torch.set_num_threads(threads)
        learner.update(replay)
        begun = time.perf_counter()
        for _ in range(max(512 // settings.batch, 2)):
            learner.update(replay)
        seconds[threads] = time.perf_counter() - begun
    torch.set_num_threads(min(seconds, key=seconds.get))


def train(settings: Settings, going, seed: int = 1) -> None:
    """Train as long as `going` returns true.

    `going` takes the decisions so far, the returns of the latest games, and the network.
    """
    use_fastest_threads(settings)
    learner, replay = Learner(settings, seed), Replay(settings)
    if settings.free:
        _train_beside_a_player(settings, going, learner, replay, seed)
        return
    player = Player(settings, learner.network, seed)
    while going(player.decisions, player.returns, learner.network):
        replay.append(*player.step(player.decisions))
        due = (player.decisions - settings.start) // settings.decisions
        while learner.updates < due:
            learner.update(replay)


def _train_beside_a_player(settings, going, learner: Learner, replay: Replay, seed: int) -> None:
    """Alternate between updates and the steps that another process has played.

    The queue holds eight steps, as in the book. The learner empties it before each update, and a
    player that is eight steps ahead waits.
    """
    spawn = torch.multiprocessing.get_context("spawn")
    queue = spawn.Queue(8)
    learner.network.share_memory()
    player = spawn.Process(target=_play, args=(settings, learner.network, queue, seed), daemon=True)
    player.start()
    decisions, returns = 0, ()
    try:
        while going(decisions, returns, learner.network):
            while queue.qsize() or decisions < settings.start:
                step, returns = queue.get()
                replay.append(*step)
                decisions += settings.envs
            learner.update(replay)
    finally:
        player.kill()
        player.join()


def _play(settings: Settings, network: QNetwork, queue, seed: int) -> None:
    """Play forever, as the main function of the player's process."""
    torch.set_num_threads(1)
    player = Player(settings, network, seed)
    while True:
        # In the book, epsilon falls by a quarter of the decisions, as a batch has four times 32.
        step = player.step(player.decisions // 4)
        queue.put((step, tuple(player.returns)))


def greedy_returns(network: QNetwork, settings: Settings, games: int = 30) -> float:
    """Return the mean return of greedy games from fixed seeds."""
    envs = make_envs(Settings(envs=games, vector=True, cheap=settings.cheap), 1000)
    obs, _ = envs.reset(seed=1000)
    returns, over = np.zeros(games), np.zeros(games, bool)
    while not over.all():
        with torch.inference_mode():
            actions = network(torch.from_numpy(obs)).argmax(dim=1).numpy()
        obs, rewards, terminated, truncated, _ = envs.step(actions)
        returns += np.where(over, 0, rewards)
        over |= terminated | truncated
    envs.close()
    return math.fsum(returns) / games
