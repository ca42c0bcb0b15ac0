"""A Q-network of pixels, its target network and their updates.

In addition to the sources of dqn.learner, Double DQN is by H. van Hasselt et al., "Deep
Reinforcement Learning with Double Q-learning" (2016), and n-step returns are those of M. Hessel et
al., "Rainbow" (2018).
"""

import copy
from functools import partial

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from goalreel.training.pixels.frame_replay_buffer import ReplayBatch
from goalreel.training.pixels.network import PixelNetwork, weights_for_acting
from goalreel.training.pixels.settings import PipelineSettings

_HALF = {"cpu": torch.bfloat16, "cuda": torch.float16}


class PixelLearner:
    """A Q-network in training."""

    def __init__(self, settings: PipelineSettings, actions: int, seed: int):
        """Create random weights, the same for the same seed."""
        self._settings, self.updates = settings, 0
        available = "cuda" if torch.cuda.is_available() else "cpu"
        self.device = torch.device(settings.device or available)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = PixelNetwork(actions, settings.stack, settings.network, settings.dueling)
        self.model = network.to(self.device)
        self._target = copy.deepcopy(self.model).requires_grad_(requires_grad=False)
        rate = settings.learning_rate
        self._optimizer = torch.optim.Adam(self.model.parameters(), rate, fused=True)
        self._sums = torch.full((2,), torch.nan, device=self.device)  # loss and TD error
        half = _HALF[self.device.type]
        halved = settings.autocast and computes_in_half(self.device)
        # Each thread needs its own context.
        self._autocast = partial(torch.autocast, self.device.type, half, enabled=halved)
        scaled = halved and half is torch.float16  # because of its small range
        self._scaler = torch.amp.GradScaler(self.device.type, enabled=scaled)
        self._parts = {"network": self.model, "target": self._target}  # with a state
        self._parts |= {"optimizer": self._optimizer, "scaler": self._scaler}

    @torch.no_grad()
    def target_values(self, batch: ReplayBatch) -> torch.Tensor:
        """Return the target network's values, (n, actions) float32, of the next observations.

        Any thread may call it: it changes nothing, and updates do not change the target network.
        """
        with self._autocast():
            return self._target(batch.next_stacks).float()

    def learn(self, batch: ReplayBatch, values: torch.Tensor, rate_left: float = 1.0) -> None:
        """Make one update from a batch and its `target_values`. `learned` has its figures.

        rate_left: factor of the learning rate.
        """
        for group in self._optimizer.param_groups:
            group["lr"] = self._settings.learning_rate * rate_left
        expected = self._targets(batch, values)
        self._optimizer.zero_grad()
        with self._autocast():
            found = self.model(batch.stacks)
        found = found.float().gather(1, batch.actions.unsqueeze(1)).squeeze(1)
        loss = functional.smooth_l1_loss(found, expected)
        self._scaler.scale(loss).backward()
        self._scaler.unscale_(self._optimizer)
        if self._settings.max_grad_norm:
            nn.utils.clip_grad_norm_(self.model.parameters(), self._settings.max_grad_norm)
        self._scaler.step(self._optimizer)
        self._scaler.update()
        self.updates += 1
        self._sums = torch.stack([loss.detach(), (found.detach() - expected).abs().mean()])

    @property
    def learned(self) -> dict[str, float]:
        """The mean loss and absolute TD error of the latest update.

        Only this property waits for a GPU.
        """
        return dict(zip(("loss", "td_error"), self._sums.tolist(), strict=True))

    @torch.no_grad()
    def _targets(self, batch: ReplayBatch, values: torch.Tensor) -> torch.Tensor:
        """Return the target values, (n,) float32, of the actions; values: (n, actions)."""
        best = values.max(dim=1).values
        if self._settings.double:
            with self._autocast():
                chosen = self.model(batch.next_stacks).argmax(dim=1, keepdim=True)
            best = values.gather(1, chosen).squeeze(1)
        # After termination the next frames are arbitrary, and the discount is 0.
        return batch.returns + batch.discounts * best

    def update_target(self) -> None:
        """Copy the weights to the target network."""
        self._target.load_state_dict(self.model.state_dict())

    def weights(self) -> dict[str, np.ndarray]:
        """Return float32 weights for the collectors, always with the same names and shapes."""
        return weights_for_acting(self.model)

    def state(self) -> dict:
        """Return the state for `load`; the next update changes its tensors."""
        parts = {name: part.state_dict() for name, part in self._parts.items()}
        return parts | {"updates": self.updates}

    def load(self, state: dict) -> None:
        """Restore a state. Raises RuntimeError or ValueError if it is of another network."""
        for name, part in self._parts.items():
            part.load_state_dict(state[name])
        self.updates = state["updates"]


def computes_in_half(device: torch.device) -> bool:
    """Return whether a device has instructions for half precision, instead of emulating it."""
    abilities = torch.cpu.get_capabilities()  # "avx512_bf16", "amx_bf16" and such
    return device.type != "cpu" or any(has for name, has in abilities.items() if "bf16" in name)
