"""A Q-network, its target network and their updates.

The target network is that of V. Mnih et al., "Human-level control through deep reinforcement
learning" (2015). The Huber loss, the maximum gradient norm of 10 and Adam are those of
Stable-Baselines3's DQN. Observations are scaled to -1 to 1, as by Gymnasium's RescaleObservation.
"""

import contextlib
import copy
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from goalreel.environments.registry import MAX_POSITION, MAX_SPEED, MIN_POSITION
from goalreel.training.dqn.playing import Transitions
from goalreel.training.dqn.settings import Settings

ACTIONS, OBSERVATION = 3, 2
_CLIP = 10.0
_LOW = np.array([MIN_POSITION, -MAX_SPEED])
_HIGH = np.array([MAX_POSITION, MAX_SPEED])
_MIDDLE, _HALF = (_LOW + _HIGH) / 2, (_HIGH - _LOW) / 2


def network(hidden: Sequence[int]) -> nn.Sequential:
    """Return a perceptron with ReLU, from (n, 2) observations to (n, 3) action values."""
    sizes = (OBSERVATION, *hidden, ACTIONS)
    layers: list[nn.Module] = []
    for inputs, outputs in zip(sizes, sizes[1:], strict=False):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def rescaled(obs: np.ndarray) -> torch.Tensor:
    """Return (n, 2) raw observations scaled to -1 to 1, float32."""
    return torch.from_numpy(((obs - _MIDDLE) / _HALF).astype(np.float32))


class Learner:
    """A Q-network in training."""

    def __init__(self, settings: Settings, seed: int):
        """Create random weights, the same for the same seed."""
        torch.manual_seed(seed)
        torch.use_deterministic_algorithms(True)
        self.model = network(settings.hidden)
        self._target = copy.deepcopy(self.model)
        self._optimizer = torch.optim.Adam(
            self.model.parameters(), lr=settings.learning_rate, fused=True
        )
        self._no_grad = torch.no_grad if settings.no_grad else contextlib.nullcontext

    def values(self, obs: np.ndarray) -> np.ndarray:
        """Return the action values, (n, 3) float32, of (n, 2) float32 observations."""
        with self._no_grad():
            return self.model(rescaled(obs)).detach().numpy()

    def weights(self) -> dict[str, np.ndarray]:
        """Return a copy of the weights, named as in PyTorch, for raw observations.

        The first layer includes the scaling: w (x - m) / h + b is (w / h) x + (b - (w / h) m).
        """
        weights = {name: tensor.numpy().copy() for name, tensor in self.model.state_dict().items()}
        matrix = weights["0.weight"] / _HALF
        weights["0.bias"] = (weights["0.bias"] - matrix @ _MIDDLE).astype(np.float32)
        weights["0.weight"] = matrix.astype(np.float32)
        return weights

    def update_target(self) -> None:
        """Copy the weights to the target network."""
        self._target.load_state_dict(self.model.state_dict())

    def learn(self, batch: Transitions) -> float:
        """Make one update from a batch, and return the loss."""
        with self._no_grad():
            best = self._target(rescaled(batch.next_obs)).max(dim=1).values
            rewards = torch.from_numpy(batch.rewards)
            expected = (rewards + torch.from_numpy(batch.discounts) * best).detach()
        actions = torch.from_numpy(batch.actions).unsqueeze(1)
        values = self.model(rescaled(batch.obs)).gather(1, actions).squeeze(1)
        loss = functional.smooth_l1_loss(values, expected)
        self._optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), _CLIP)
        self._optimizer.step()
        return float(loss.detach())
