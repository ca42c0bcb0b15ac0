"""The learner of pixels: a Q-network, its target, and updates over many batches.

An update follows the mean gradient of several batches (gradient accumulation), so that the largest
batch is not bounded by memory. With BatchNorm each batch is normalised by its own statistics, as
it would be alone. The target, and the choice of Double DQN, use the running averages instead: a
target then depends on its own step alone, not on what else was drawn (nor on the frames after an
episode's end, which mean nothing), and the choice is made by the very function that plays, which
collectors compute from the same averages (`weights`). Sources are those of dqn.learner; Adam's
epsilon is that of M. Hessel et al., "Rainbow" (2018).
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from goalreel.cli import say
from goalreel.errors import GoalreelError
from goalreel.policies.warp import SIDE
from goalreel.training.pixels.checkpoint import changed
from goalreel.training.pixels.frame_replay_buffer import Batch
from goalreel.training.pixels.network import PixelNetwork, weights_for_acting
from goalreel.training.pixels.settings import LearnerSettings

_EPSILON = 1.5e-4
_HALF = {"cpu": torch.bfloat16, "cuda": torch.float16}


@dataclass(frozen=True)
class Learned:
    """The means of an update over all steps of its batches."""

    loss: float
    td_error: float  # the size of the temporal difference
    gradient_norm: float  # before clipping; not finite where float16 overflowed: no weight changed


class PixelLearner:
    """A network in training.

    Attributes:
        model: the network.
        device: where it learns.
        updates: how many there were.
    """

    def __init__(self, settings: LearnerSettings, actions: int, seed: int):
        """Begin with random weights, the same for the same seed."""
        self._settings, self.updates = settings, 0
        self.device = torch.device(
            settings.device or ("cuda" if torch.cuda.is_available() else "cpu")
        )
        network = PixelNetwork(actions, settings.stack, settings.normalise, seed)
        self.model = network.to(self.device, memory_format=torch.channels_last)
        self._target = copy.deepcopy(self.model).eval().requires_grad_(requires_grad=False)
        self._optimiser = torch.optim.Adam(
            self.model.parameters(), lr=settings.learning_rate, eps=_EPSILON
        )
        half = _HALF[self.device.type]
        halved = settings.autocast and computes_in_half(self.device)
        self._autocast = torch.autocast(self.device.type, half, enabled=halved)
        scaled = halved and half is torch.float16  # whose range is small
        self._scaler = torch.amp.GradScaler(self.device.type, enabled=scaled)
        if settings.compile:
            self._compile()

    def _compile(self) -> None:
        """Compile the networks in place where that works; elsewhere log that it does not.

        All that an update computes is compiled here, by an example of what it will be given:
        PyTorch looks for its compilers no earlier, and a training does not wait later. Weights and
        averages stay as they are.
        """
        settings, both = self._settings, (self.model, self._target)
        example = np.zeros((settings.batch, settings.stack, SIDE, SIDE), np.uint8)
        stacks = self._stacks(example)
        before = copy.deepcopy(self.model.state_dict())
        for network in both:
            network.compile()
        try:
            with self._autocast:
                values = self.model(stacks)
            values.float().sum().backward()
            for network in both:
                with torch.no_grad(), self._autocast:
                    network.eval()(stacks)
        except Exception as error:  # of Dynamo, of Inductor, of the compilers, of many kinds
            for network in both:
                network._compiled_call_impl = None  # as before Module.compile
            lines = str(error).strip().splitlines() or [type(error).__name__]
            say(f"torch.compile: continuing without ({lines[0]})")
        finally:
            self.model.train().zero_grad()
            self.model.load_state_dict(before)

    def learn(self, batches: Sequence[Batch]) -> Learned:
        """Make one update, by the mean over all steps of the batches."""
        steps = sum(len(batch.actions) for batch in batches)
        sums = torch.zeros(2, device=self.device)
        targets = self._targets(batches)
        self._optimiser.zero_grad()
        for batch, expected in zip(batches, targets, strict=True):
            loss, error = self._loss(batch, expected)
            self._scaler.scale(loss / steps).backward()
            sums += torch.stack([loss.detach(), error])
        self._scaler.unscale_(self._optimiser)
        norm = self._clip()
        self._scaler.step(self._optimiser)
        self._scaler.update()
        self.updates += 1
        loss, error = (sums / steps).tolist()
        return Learned(loss, error, float(norm))

    def _loss(self, batch: Batch, expected: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return a batch's summed loss, and the sum of its temporal differences' sizes."""
        actions = self._tensor(batch.actions).unsqueeze(1)
        with self._autocast:
            values = self.model(self._stacks(batch.stacks))
        values = values.float().gather(1, actions).squeeze(1)
        errors = (values.detach() - expected).abs().sum()
        return functional.smooth_l1_loss(values, expected, reduction="sum"), errors

    @torch.no_grad()
    def _targets(self, batches: Sequence[Batch]) -> list[torch.Tensor]:
        """Return the target values, (n,) float32, of each batch's actions.

        They come before the update touches the running averages: no batch changes another's.
        """
        self.model.eval()
        targets = []
        for batch in batches:
            best = self._best(self._stacks(batch.next_stacks))
            best = torch.where(self._tensor(batch.terminated), 0.0, best)
            targets.append(self._tensor(batch.rewards) + self._settings.discount * best)
        self.model.train()
        return targets

    def _best(self, stacks: torch.Tensor) -> torch.Tensor:
        """Return the target network's values, (n,) float32, of the best actions."""
        with self._autocast:
            values = self._target(stacks).float()
            if not self._settings.double:
                return values.max(dim=1).values
            chosen = self.model(stacks).argmax(dim=1, keepdim=True)
        return values.gather(1, chosen).squeeze(1)

    def _clip(self) -> torch.Tensor:
        """Return the gradient's norm, and hold it to the limit if there is one."""
        parameters = list(self.model.parameters())
        norm = nn.utils.get_total_norm([parameter.grad for parameter in parameters])
        if self._settings.gradient_clip is not None:
            nn.utils.clip_grads_with_norm_(parameters, self._settings.gradient_clip, norm)
        return norm

    def _tensor(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).to(self.device)

    def _stacks(self, array: np.ndarray) -> torch.Tensor:
        return self._tensor(array).contiguous(memory_format=torch.channels_last)

    def update_target(self) -> None:
        """Copy weights and running averages to the target network."""
        self._target.load_state_dict(self.model.state_dict())

    def weights(self) -> dict[str, np.ndarray]:
        """Return float32 weights for Actor: the same names and shapes at any time."""
        return weights_for_acting(self.model)

    def state(self) -> dict:
        """Return a copy, on the CPU, of all that `load` needs."""
        state = {
            **{"network": self.model.state_dict(), "target": self._target.state_dict()},
            **{"optimiser": self._optimiser.state_dict(), "scaler": self._scaler.state_dict()},
            "updates": self.updates,
        }
        return changed(state, torch.Tensor, lambda tensor: tensor.detach().to("cpu", copy=True))

    def load(self, state: dict) -> None:
        """Resume from a state. Raises GoalreelError if it is not of a learner like this one."""
        try:
            for name, module in (("network", self.model), ("target", self._target)):
                module.load_state_dict(state[name])
            self._optimiser.load_state_dict(state["optimiser"])
            self._scaler.load_state_dict(state["scaler"])
            self.updates = int(state["updates"])
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            reason = str(error).strip().splitlines()[-1].strip()
            raise GoalreelError(f"it is not the state of such a learner ({reason})") from None


def computes_in_half(device: torch.device) -> bool:
    """Return whether a device has instructions for its half precision; else it is emulated."""
    abilities = torch.cpu.get_capabilities()  # "avx512_bf16", "amx_bf16" and such
    return device.type != "cpu" or any(has for name, has in abilities.items() if "bf16" in name)
