"""The learner: a Q-network, its target, and one step of gradient descent.

Sources: V. Mnih et al., "Human-level control through deep reinforcement learning" (2015): the
target network; H. van Hasselt et al., "Deep Reinforcement Learning with Double Q-learning" (2016);
the Huber loss, the clip of the gradient's norm at 10 and Adam are Stable-Baselines3's DQN.
PyTorch is imported here, and by who reads or writes policy files; nothing else needs it.
"""

import contextlib
import copy
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from goalreel.dqn.replay import Batch
from goalreel.dqn.settings import Settings

ACTIONS, OBSERVATION = 3, 2
_CLIP = 10.0


def network(hidden: Sequence[int]) -> nn.Sequential:
    """Return a perceptron, (n, 2) observations to (n, 3) values, ReLU between its layers."""
    sizes = (OBSERVATION, *hidden, ACTIONS)
    layers: list[nn.Module] = []
    for inputs, outputs in zip(sizes, sizes[1:], strict=False):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def weights_of(model: nn.Module) -> dict[str, np.ndarray]:
    """Return a copy of the weights, by PyTorch's names."""
    return {name: tensor.numpy().copy() for name, tensor in model.state_dict().items()}


class Learner:
    """A network in training; `values` is what play asks."""

    def __init__(self, settings: Settings, seed: int):
        """Begin with random weights, the same for the same seed."""
        torch.manual_seed(seed)
        torch.use_deterministic_algorithms(True)
        self._settings = settings
        self.model = network(settings.hidden)
        self._target = copy.deepcopy(self.model)
        self._optimiser = torch.optim.Adam(self.model.parameters(), lr=settings.learning_rate)
        self._watched = torch.no_grad if settings.no_grad else contextlib.nullcontext

    def values(self, seen: np.ndarray) -> np.ndarray:
        """Return the values of actions, (n, 3) float32, for (n, 2) float32 observations."""
        with self._watched():
            return self.model(torch.from_numpy(seen)).detach().numpy()

    def update_target(self) -> None:
        """Have the target network take over the weights."""
        self._target.load_state_dict(self.model.state_dict())

    def learn(self, batch: Batch) -> float:
        """Take a step towards the target values of a batch; return the loss."""
        after = torch.from_numpy(batch.after)
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
        found = self.model(torch.from_numpy(batch.seen)).gather(1, actions).squeeze(1)
        loss = functional.smooth_l1_loss(found, wanted)
        self._optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), _CLIP)
        self._optimiser.step()
        return float(loss.detach())
