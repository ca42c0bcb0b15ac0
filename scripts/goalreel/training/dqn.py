"""Deep Q-learning: play with some random actions, and learn from a replay buffer.

The target network is that of V. Mnih et al., "Human-level control through deep reinforcement
learning" (2015). Double DQN is by H. van Hasselt et al. (2016), the dueling network by Z. Wang et
al. (2016, equation 9), and n-step returns are those of M. Hessel et al., "Rainbow" (2018). The
Huber loss is that of Stable-Baselines3's DQN.
"""

import copy

import numpy as np
import torch
from torch.nn import functional

from goalreel.policies.torch_network import TorchNetwork
from goalreel.training.envs import EndedGame, Envs
from goalreel.training.processes import Group
from goalreel.training.replay_buffer import ReplayBatch, ReplayBuffer
from goalreel.training.settings import Settings

_CHUNK = 256  # decisions of an iteration, after which the processes compare notes


class Dqn:
    """A Q-network in training, in one of several equal processes."""

    def __init__(
        self,
        settings: Settings,
        network: TorchNetwork,
        envs: Envs,
        group: Group,
        seed: int,
        dtype: torch.dtype = torch.float32,
    ):
        """Allocate the replay buffer of the group's share of the environments."""
        self._settings, self.network, self._envs, self._group = settings, network, envs, group
        self.updates, self.figures = 0, {"loss": float("nan"), "td_error": float("nan")}
        self._device, self._dtype = next(network.parameters()).device, dtype
        self._target = copy.deepcopy(network).requires_grad_(requires_grad=False)
        self.optimizer = torch.optim.Adam(network.parameters(), settings.learning_rate, fused=True)
        own, shape = len(envs.obs), envs.obs.shape[1:]
        size = settings.buffer_size * own // settings.n_envs
        # Raises OptionError if the memory does not suffice.
        self.buffer = ReplayBuffer(own, size, shape, settings.n_steps, settings.gamma, self._device)
        self._episode_step = np.zeros(own, np.int32)
        self._numpy_rng = np.random.default_rng(seed)
        self._rng = torch.Generator(self._device).manual_seed(seed)

    @property
    def decisions(self) -> int:
        """The number of decisions of an iteration, over all processes."""
        num_envs = self._settings.n_envs
        return num_envs * max(_CHUNK // num_envs, 1)

    def iterate(self, done: int) -> list[EndedGame]:
        """Play and learn after `done` decisions; return this process's finished games."""
        settings, games = self._settings, []
        for number in range(done, done + self.decisions, settings.n_envs):
            games += self._play(settings.epsilon(number))
            due = number + settings.n_envs - settings.learning_starts
            due = due * settings.gradient_steps // settings.train_freq
            while self.updates < due and self.buffer.count > settings.n_steps:
                self._learn(settings.remaining(number))
            every = settings.target_update_interval
            if number // every != (number + settings.n_envs) // every:
                self._target.load_state_dict(self.network.state_dict())
        return games

    def _play(self, epsilon: float) -> tuple[EndedGame, ...]:
        """Step all environments, with a share of random actions, and store the step."""
        envs, rng, obs = self._envs, self._numpy_rng, self._envs.obs
        actions = rng.integers(self.network.actions.out_features, size=len(obs))
        greedy = rng.random(len(obs)) >= epsilon
        if greedy.any():
            actions[greedy] = self.best_actions(obs[greedy])
        step = envs.step(actions)
        self.buffer.add(
            obs,
            actions=actions.astype(np.int16),
            rewards=step.rewards,
            terminated=step.terminated,
            truncated=step.truncated,
            episode_step=self._episode_step,
        )
        self._episode_step = np.where(step.is_last, 0, self._episode_step + 1).astype(np.int32)
        return step.ended

    @torch.no_grad()
    def best_actions(self, obs: np.ndarray) -> np.ndarray:
        """Return the greedy actions, (n,), of observations."""
        values, state = self.network(torch.from_numpy(obs).to(self._device), self._dtype)
        return self._combined(values, state).argmax(1).cpu().numpy()

    def _combined(self, values: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        """Return the action values, given both heads of a network."""
        if not self._settings.dueling:
            return values
        return values - values.mean(1, keepdim=True) + state[:, None]

    def _learn(self, remaining: float) -> None:
        """Make one update of the group's share of a batch."""
        settings = self._settings
        for group in self.optimizer.param_groups:
            group["lr"] = settings.learning_rate * remaining
        batch = self.buffer.sample(settings.batch_size // self._group.size, self._rng)
        expected = self._targets(batch)
        values = self._combined(*self.network(batch.obs, self._dtype))
        found = values.gather(1, batch.actions[:, None])[:, 0]
        loss = functional.smooth_l1_loss(found, expected)
        self._group.descend(loss, self.optimizer, settings.max_grad_norm)
        self.updates += 1
        if self.updates % 64 == 0:
            error = (found.detach() - expected).abs().mean()
            self.figures = {"loss": loss.item(), "td_error": error.item()}

    @torch.no_grad()
    def _targets(self, batch: ReplayBatch) -> torch.Tensor:
        """Return the target values, (n,) float32, of the actions."""
        values = self._combined(*self._target(batch.next_obs, self._dtype))
        if self._settings.double:
            own = self._combined(*self.network(batch.next_obs, self._dtype))
            best = values.gather(1, own.argmax(1, keepdim=True))[:, 0]
        else:
            best = values.max(1).values
        # After termination the next observation is arbitrary, and the discount is 0.
        return batch.returns + batch.discounts * best

    def state(self) -> dict:
        """Return what `load` restores, besides the weights. Games begin again."""
        state = {"updates": self.updates, "rng": self._rng.get_state().cpu()}
        state |= {"numpy_rng": self._numpy_rng.bit_generator.state}
        return state | {"target": self._target.state_dict(), "buffer": self.buffer.state()}

    def load(self, state: dict) -> None:
        """Restore a state."""
        self.updates = state["updates"]
        self._rng.set_state(state["rng"])
        self._numpy_rng.bit_generator.state = state["numpy_rng"]
        self._target.load_state_dict(state["target"])
        self.buffer.load(state["buffer"])
