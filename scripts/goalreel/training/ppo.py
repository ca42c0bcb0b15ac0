"""Proximal policy optimization: play some steps, then learn from them in several epochs.

J. Schulman et al., "Proximal Policy Optimization Algorithms" (2017), with generalized advantage
estimation (Schulman et al., 2016). As in Stable-Baselines3, a truncated episode continues with the
value of its last observation, and rewards are divided by the standard deviation of the discounted
returns so far, as by its VecNormalize. Advantages are normalized over all steps of an update.
"""

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

from goalreel.policies.torch_network import TorchNetwork
from goalreel.training.envs import EndedGame, Envs
from goalreel.training.processes import Group
from goalreel.training.settings import Settings

_FIGURES = "policy_gradient_loss", "value_loss", "entropy_loss", "approx_kl"


def initialize(network: TorchNetwork) -> None:
    """Give a network orthogonal weights with the usual gains, and a nearly uniform policy."""
    for module in network.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            gain = {network.actions: 0.01, network.state: 1.0}.get(module, 2**0.5)
            nn.init.orthogonal_(module.weight, gain)
            nn.init.zeros_(module.bias)


class Ppo:
    """A policy in training, in one of several equal processes."""

    def __init__(
        self,
        settings: Settings,
        network: TorchNetwork,
        envs: Envs,
        group: Group,
        seed: int,
        dtype: torch.dtype = torch.float32,
    ):
        """Prepare to play the group's share of the environments, with weights for `initialize`."""
        self._settings, self.network, self._envs, self._group = settings, network, envs, group
        self.updates, self.figures = 0, dict.fromkeys(("loss", *_FIGURES), float("nan"))
        self._device, self._dtype = next(network.parameters()).device, dtype
        weights, rate = network.parameters(), settings.learning_rate
        self.optimizer = torch.optim.Adam(weights, rate, eps=1e-5, fused=True)
        self._rng = torch.Generator().manual_seed(seed)
        count, shape = settings.n_steps, envs.obs.shape
        dtype = torch.uint8 if envs.obs.dtype == np.uint8 else torch.float32
        # Frames of a stack come last, as convolutions take them.
        self._obs = torch.empty((count, shape[0], *shape[2:], shape[1]), dtype=dtype)
        self._actions = torch.zeros((count, shape[0]), dtype=torch.long)
        self._logs, self._rewards, self._over = torch.zeros((3, count, shape[0]))
        self._values = torch.zeros((count + 1, shape[0]))
        self._discounted = torch.zeros(shape[0])  # returns of the running episodes so far
        self._moments = torch.zeros(3, dtype=torch.float64)  # their count, sum and sum of squares

    @property
    def decisions(self) -> int:
        """The number of decisions of an iteration, over all processes."""
        return self._settings.n_steps * self._settings.n_envs

    def iterate(self, done: int) -> list[EndedGame]:
        """Play and learn after `done` decisions; return this process's finished games."""
        remaining = self._settings.remaining(done)
        for group in self.optimizer.param_groups:
            group["lr"] = self._settings.learning_rate * remaining
        games = self._play()
        self._learn(*self._advantages(), self._settings.ent_coef * remaining)
        return games

    @torch.no_grad()
    def _evaluate(self, obs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits, values = self.network(obs.to(self._device), self._dtype)
        return logits.cpu(), values.cpu()

    def _play(self) -> list[EndedGame]:
        games = []
        self._cut_values = torch.zeros_like(self._rewards)
        for step in range(self._settings.n_steps):
            self._obs[step] = torch.from_numpy(self._envs.obs).movedim(1, -1)
            logits, self._values[step] = self._evaluate(self._obs[step].movedim(-1, 1))
            logs = logits.log_softmax(1)
            actions = torch.multinomial(logs.exp(), 1, generator=self._rng)
            self._actions[step], self._logs[step] = actions[:, 0], logs.gather(1, actions)[:, 0]
            played = self._envs.step(actions[:, 0].numpy())
            self._rewards[step] = torch.from_numpy(played.rewards)
            self._over[step] = torch.from_numpy(played.terminated | played.truncated)
            cut = played.truncated & ~played.terminated
            if cut.any():
                values = self._evaluate(torch.from_numpy(played.next_obs[cut]))[1]
                self._cut_values[step, torch.from_numpy(cut)] = values
            games += played.ended
        self._values[-1] = self._evaluate(torch.from_numpy(self._envs.obs))[1]
        return games

    def _advantages(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the advantages, normalized over all processes, and the returns, flattened."""
        gamma, advantage = self._settings.gamma, torch.zeros_like(self._rewards[0])
        advantages, rewards = torch.zeros_like(self._rewards), self._rewards / self._deviation()
        for step in reversed(range(len(advantages))):
            runs = 1 - self._over[step]
            next_values = runs * self._values[step + 1] + self._cut_values[step]
            expected = rewards[step] + gamma * next_values
            kept = gamma * self._settings.gae_lambda * runs * advantage
            advantages[step] = advantage = expected - self._values[step] + kept
        returns = (advantages + self._values[:-1]).flatten()
        moments = self._group.sum(torch.stack([advantages.mean(), advantages.square().mean()]))
        mean, square = moments / self._group.size
        deviation = (square - mean**2).clamp(min=1e-16).sqrt()
        return ((advantages - mean) / (deviation + 1e-8)).flatten(), returns

    def _deviation(self) -> float:
        """Return the standard deviation of all discounted returns, with those of this update."""
        returns = torch.zeros_like(self._rewards)
        for step, rewards in enumerate(self._rewards):
            returns[step] = self._discounted = self._settings.gamma * self._discounted + rewards
            self._discounted = self._discounted * (1 - self._over[step])
        returns = returns.double()
        new = torch.tensor([returns.numel(), returns.sum(), returns.square().sum()]).double()
        self._moments += self._group.sum(new)
        count, total, squares = self._moments.tolist()
        return max(squares / count - (total / count) ** 2, 1e-8) ** 0.5

    def _learn(self, advantages: torch.Tensor, returns: torch.Tensor, entropy_weight: float):
        settings, sums = self._settings, torch.zeros(4)
        columns = self._obs.flatten(0, 1), self._actions.flatten(), self._logs.flatten()
        columns = [column.to(self._device) for column in (*columns, advantages, returns)]
        size = settings.batch_size // self._group.size
        updates = 0
        for _ in range(settings.n_epochs):
            order = torch.randperm(len(returns), generator=self._rng).to(self._device)
            for part in order.split(size):
                # `column[part]` takes ten times as long for frames.
                obs, *rows = (column.index_select(0, part) for column in columns)
                actions, logs, gains, targets = rows
                logits, values = self.network(obs.movedim(-1, 1), self._dtype)
                chosen = Categorical(logits=logits)
                ratio = (chosen.log_prob(actions) - logs).exp()
                clipped = ratio.clamp(1 - settings.clip_range, 1 + settings.clip_range)
                policy_loss = -torch.min(ratio * gains, clipped * gains).mean()
                value_loss = (values - targets).square().mean()
                entropy = chosen.entropy().mean()
                loss = policy_loss + settings.vf_coef * value_loss - entropy_weight * entropy
                self._group.descend(loss, self.optimizer, settings.max_grad_norm)
                updates += 1
                with torch.no_grad():
                    kl = ((ratio - 1) - ratio.log()).mean()
                    sums += torch.stack([policy_loss, value_loss, -entropy, kl]).cpu()
        self.updates += updates
        figures = (sums / updates).tolist()
        self.figures = dict(zip(_FIGURES, figures, strict=True)) | {"loss": sum(figures[:2])}

    def state(self) -> dict:
        """Return what `load` restores, besides the weights. Games begin again."""
        return {"updates": self.updates, "rng": self._rng.get_state(), "moments": self._moments}

    def load(self, state: dict) -> None:
        """Restore a state."""
        self.updates = state["updates"]
        self._rng.set_state(state["rng"])
        self._moments = state["moments"].clone()
