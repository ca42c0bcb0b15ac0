"""The learner: a Q-network, its target, and one step of gradient descent.

Sources: V. Mnih et al., "Human-level control through deep reinforcement learning" (2015): the
target network; H. van Hasselt et al., "Deep Reinforcement Learning with Double Q-learning" (2016);
the Huber loss, the clip of the gradient's norm at 10 and Adam are Stable-Baselines3's DQN; rescaled
observations are those of Gymnasium's RescaleObservation, from -1 to 1.
PyTorch is imported here, and by who reads or writes policy files; nothing else needs it.
"""

import contextlib
import copy
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from goalreel.environments.registry import MAX_POSITION, MAX_SPEED, MIN_POSITION
from goalreel.training.dqn.replay_buffer import Batch
from goalreel.training.dqn.settings import Settings

ACTIONS, OBSERVATION = 3, 2
_CLIP = 10.0
_LOW = np.array([MIN_POSITION, -MAX_SPEED])
_HIGH = np.array([MAX_POSITION, MAX_SPEED])
_MIDDLE, _HALF = (_LOW + _HIGH) / 2, (_HIGH - _LOW) / 2


def network(hidden: Sequence[int]) -> nn.Sequential:
    """Return a perceptron, (n, 2) observations to (n, 3) values, ReLU between its layers."""
    sizes = (OBSERVATION, *hidden, ACTIONS)
    layers: list[nn.Module] = []
    for inputs, outputs in zip(sizes, sizes[1:], strict=False):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Learner:
    """A network in training; `values` is what play asks."""

    def __init__(self, settings: Settings, seed: int):
        """Begin with random weights, the same for the same seed."""
        torch.manual_seed(seed)
        torch.use_deterministic_algorithms(True)
        self._settings = settings
        self.model = network(settings.hidden)
        self._target = copy.deepcopy(self.model)
        self._optimiser = torch.optim.Adam(
            self.model.parameters(), lr=settings.learning_rate, fused=settings.fused
        )
        self._watched = torch.no_grad if settings.no_grad else contextlib.nullcontext

    def values(self, seen: np.ndarray) -> np.ndarray:
        """Return the values of actions, (n, 3) float32, for (n, 2) float32 observations."""
        with self._watched():
            return self.model(self._input(seen)).detach().numpy()

    def weights(self) -> dict[str, np.ndarray]:
        """Return a copy of the weights, by PyTorch's names, of a network of raw observations.

        Where the learner sees them rescaled, its first layer's weights are such that they take it
        in: w ((x - m) / h) + b is (w / h) x + (b - (w / h) m).
        """
        kept = {name: tensor.numpy().copy() for name, tensor in self.model.state_dict().items()}
        if self._settings.rescaled:
            matrix = kept["0.weight"] / _HALF
            kept["0.bias"] = (kept["0.bias"] - matrix @ _MIDDLE).astype(np.float32)
            kept["0.weight"] = matrix.astype(np.float32)
        return kept

    def update_target(self) -> None:
        """Have the target network take over the weights."""
        self._target.load_state_dict(self.model.state_dict())

    def learn(self, batch: Batch) -> float:
        """Take a step towards the target values of a batch; return the loss."""
        after = self._input(batch.after)
        with self._watched():
            later = self._target(after)
            if self._settings.double:
                chosen = self.model(after).argmax(dim=1, keepdim=True)
                best = later.gather(1, chosen).squeeze(1)
            else:
                best = later.max(dim=1).values
            rewards = torch.from_numpy(batch.rewards)
            wanted = (rewards + torch.from_numpy(batch.discounts) * best).detach()
        actions = torch.from_numpy(batch.actions).unsqueeze(1)
        found = self.model(self._input(batch.seen)).gather(1, actions).squeeze(1)
        loss = functional.smooth_l1_loss(found, wanted)
        self._optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), _CLIP)
        self._optimiser.step()
        return float(loss.detach())

    def _input(self, seen: np.ndarray) -> torch.Tensor:
        """Return what the network sees: raw observations, or from -1 to 1 in each dimension."""
        if self._settings.rescaled:
            seen = ((seen - _MIDDLE) / _HALF).astype(np.float32)
        return torch.from_numpy(seen)
