"""The learner of the pixel pipeline: a Q-network, its target, and updates over many batches.

An update follows the mean gradient of several batches (gradient accumulation), so that the largest
batch is not bounded by memory. With BatchNorm each batch is normalised by its own statistics, as
it would be alone. The target, and the choice of Double DQN, use the running averages instead: a
target then depends on its own step alone, not on what else was drawn (nor on the frames after an
episode's end, which mean nothing), and the choice is made by the very function that plays, which
collectors compute from the same averages (`weights`). Sources are told in dqn.learner; Adam's
epsilon is that of M. Hessel et al., "Rainbow" (2018). Where several GPUs learn together, each does
what stands here; distributed has the rest.
"""

import contextlib
import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from goalreel.errors import GoalreelError
from goalreel.training.pixels.compiling import compile_both
from goalreel.training.pixels.frame_replay_buffer import Batch
from goalreel.training.pixels.learner_settings import SIDE, LearnerSettings
from goalreel.training.pixels.network import PixelNetwork, weights_for_acting

_EPSILON = 1.5e-4
_HALF = {"cpu": torch.bfloat16, "cuda": torch.float16}


@dataclass(frozen=True)
class Learned:
    """What an update came of: means over all steps of its batches.

    td_error: the mean size of the temporal difference; gradient_norm: before it was clipped, and
    not finite where float16 overflowed, in which case the weights stay as they were
    """

    loss: float
    td_error: float
    gradient_norm: float


class PixelLearner:
    """A network in training.

    updates: how many there were; device: where it learns
    """

    def __init__(self, settings: LearnerSettings, actions: int, seed: int):
        """Begin with random weights, the same for the same seed.

        Raises GoalreelError for a device that is not there.
        """
        self._settings, self.updates = settings, 0
        self.device = device_of(settings.device)
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
            shape = (settings.batch, settings.stack, SIDE, SIDE)
            example = torch.zeros(shape, dtype=torch.uint8, device=self.device)
            compile_both(self.model, self._target, self._laid_out(example), self._autocast)
        self._trained: nn.Module = self.model

    def learn(self, batches: Sequence[Batch]) -> Learned:
        """Make one update, by the mean over all steps of the batches."""
        steps = sum(len(batch.actions) for batch in batches)
        sums = torch.zeros(2, device=self.device)
        wanted = self._targets(batches)
        self._optimiser.zero_grad()
        for place, batch in enumerate(batches):
            with self._gathering(last=place == len(batches) - 1):
                loss, error = self._loss(batch, wanted[place])
                self._scaler.scale(loss / steps).backward()
            sums += torch.stack([loss.detach(), error])
        self._scaler.unscale_(self._optimiser)
        norm = self._clip()
        self._scaler.step(self._optimiser)
        self._scaler.update()
        self.updates += 1
        loss, error = self._gathered(sums / steps).tolist()
        return Learned(loss, error, float(norm))

    def _loss(self, batch: Batch, wanted: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return a batch's summed loss, and the sum of its temporal differences' sizes."""
        actions = self._moved(batch.actions).unsqueeze(1)
        with self._autocast:
            values = self._trained(self._laid_out(self._moved(batch.stacks)))
        found = values.float().gather(1, actions).squeeze(1)
        errors = (found.detach() - wanted).abs().sum()
        return functional.smooth_l1_loss(found, wanted, reduction="sum"), errors

    @torch.no_grad()
    def _targets(self, batches: Sequence[Batch]) -> list[torch.Tensor]:
        """Return the values, (n,) float32, that those of each batch's actions should be.

        They come before the update touches the running averages: no batch changes another's.
        """
        self.model.eval()
        wanted = []
        for batch in batches:
            best = self._best(self._laid_out(self._moved(batch.next_stacks)))
            best = torch.where(self._moved(batch.terminated), 0.0, best)
            wanted.append(self._moved(batch.rewards) + self._settings.discount * best)
        self.model.train()
        return wanted

    def _best(self, stacks: torch.Tensor) -> torch.Tensor:
        """Return the target's values, (n,) float32, of the best actions."""
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
        if self._settings.clip_norm is not None:
            nn.utils.clip_grads_with_norm_(parameters, self._settings.clip_norm, norm)
        return norm

    def _gathering(self, last: bool) -> contextlib.AbstractContextManager:
        """Return what a batch's gradient is computed in; see distributed."""
        return contextlib.nullcontext()

    def _gathered(self, means: torch.Tensor) -> torch.Tensor:
        """Return the means over all processes that learn; see distributed."""
        return means

    def _moved(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).to(self.device)

    def _laid_out(self, stacks: torch.Tensor) -> torch.Tensor:
        return stacks.contiguous(memory_format=torch.channels_last)

    def update_target(self) -> None:
        """Have the target network take over weights and running averages."""
        self._target.load_state_dict(self.model.state_dict())

    def weights(self) -> dict[str, np.ndarray]:
        """Return float32 weights for acting.Actor: the same names and shapes at any time."""
        return weights_for_acting(self.model)

    def state(self) -> dict:
        """Return a copy, on the CPU, of all that a later `load` goes on from."""
        return _copied(
            {
                "network": self.model.state_dict(),
                "target": self._target.state_dict(),
                "optimiser": self._optimiser.state_dict(),
                "scaler": self._scaler.state_dict(),
                "updates": self.updates,
            }
        )

    def load(self, state: dict) -> None:
        """Go on from a state. Raises GoalreelError if it is not of a learner like this one."""
        try:
            for name, module in (("network", self.model), ("target", self._target)):
                _check_shapes(name, state[name], module.state_dict())
                module.load_state_dict(state[name])
            self._optimiser.load_state_dict(state["optimiser"])
            self._scaler.load_state_dict(state["scaler"])
            self.updates = int(state["updates"])
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise GoalreelError(f"it is no learner's state ({error})") from None


def device_of(name: str) -> torch.device:
    """Return a device of learner_settings.DEVICES. Raises GoalreelError if it is not there."""
    if name == "cuda" and not torch.cuda.is_available():
        raise GoalreelError("device: PyTorch sees no CUDA device; allowed: auto, cpu")
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(name)


def computes_in_half(device: torch.device) -> bool:
    """Tell whether a device has instructions for its half precision; else it would be imitated."""
    abilities = torch.cpu.get_capabilities()  # "avx512_bf16", "amx_bf16" and such
    return device.type != "cpu" or any(has for name, has in abilities.items() if "bf16" in name)


def _check_shapes(what: str, found: dict, wanted: dict) -> None:
    for name, tensor in wanted.items():
        if name not in found:
            raise GoalreelError(f"its {what} has no {name}")
        if found[name].shape != tensor.shape:
            shapes = f"{tuple(found[name].shape)}, not {tuple(tensor.shape)}"
            raise GoalreelError(f"its {what}'s {name} has the shape {shapes}")


def _copied(value):
    """Return a copy of nested dicts and lists, tensors on the CPU."""
    if isinstance(value, torch.Tensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, dict):
        return {name: _copied(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(inner) for inner in value]
    return value
