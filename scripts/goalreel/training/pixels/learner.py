"""The learner of pixels: a Q-network, its target, and updates over many batches.

An update follows the mean gradient of several batches (gradient accumulation), so that the largest
batch is not bounded by memory. With BatchNorm each batch is normalised by its own statistics, as
it would be alone. The target, the choice of Double DQN and those who play use averages instead: a
value then depends on its own step alone, not on what else was drawn. Averages that run behind the
weights make another function of the network, so they are taken anew, over the latest batches,
whenever weights are published or copied to the target. Sources are those of dqn.learner; returns
over n steps are those of M. Hessel et al., "Rainbow" (2018).
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from goalreel.cli import say
from goalreel.errors import GoalreelError
from goalreel.policies.pixel_network import SIDE
from goalreel.training.pixels.checkpoint import changed
from goalreel.training.pixels.frame_replay_buffer import Batch
from goalreel.training.pixels.network import PixelNetwork, weights_for_acting
from goalreel.training.pixels.settings import PipelineSettings

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

    def __init__(self, settings: PipelineSettings, actions: int, seed: int):
        """Begin with random weights, the same for the same seed."""
        self._settings, self.updates = settings, 0
        self._latest: list[Batch] = []  # of the latest update
        self.device = torch.device(
            settings.device or ("cuda" if torch.cuda.is_available() else "cpu")
        )
        layers = settings.network, settings.normalise, settings.dueling
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = PixelNetwork(actions, settings.stack, *layers)
        # On a CPU the copies that channels in the last place take cost more than they bring.
        on_gpu = self.device.type == "cuda"
        self._layout = torch.channels_last if on_gpu else torch.contiguous_format
        self.model = network.to(self.device, memory_format=self._layout)
        self._target = copy.deepcopy(self.model).eval().requires_grad_(requires_grad=False)
        self._optimiser = torch.optim.Adam(
            self.model.parameters(), lr=settings.learning_rate, fused=True
        )
        self._sums = torch.full((3,), torch.nan, device=self.device)  # of the latest update
        half = _HALF[self.device.type]
        halved = settings.autocast and computes_in_half(self.device)
        # A context of its own for each thread.
        self._autocast = partial(torch.autocast, self.device.type, half, enabled=halved)
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
        shape = settings.batch, settings.stack, SIDE, SIDE
        stacks = torch.zeros(shape, dtype=torch.uint8, device=self.device)
        before = copy.deepcopy(self.model.state_dict())
        for network in both:
            network.compile(mode="reduce-overhead" if self.device.type == "cuda" else None)
        try:
            with self._autocast():
                values = self.model(stacks)
            values.float().sum().backward()
            for network in both:
                with torch.no_grad(), self._autocast():
                    network.eval()(stacks)
        except Exception as error:  # of Dynamo, of Inductor, of the compilers, of many kinds
            for network in both:
                network._compiled_call_impl = None  # as before Module.compile
            lines = str(error).strip().splitlines() or [type(error).__name__]
            say(f"torch.compile: continuing without ({lines[0]})")
        finally:
            self.model.train().zero_grad()
            self.model.load_state_dict(before)

    @torch.no_grad()
    def prepared(self, batch: Batch) -> tuple[Batch, torch.Tensor]:
        """Return a batch as `learn` takes it, and the target network's values of what follows.

        Any thread may call it: it changes nothing, and no update changes what it reads.
        """
        if batch.actions.device != self.device:  # the copies run beside what the GPU computes
            sent = (t.pin_memory().to(self.device, non_blocking=True) for t in vars(batch).values())
            batch = Batch(*sent)
        both = batch.stacks, batch.next_stacks
        stacks, next_stacks = (s.contiguous(memory_format=self._layout) for s in both)
        with self._autocast():
            values = self._target(next_stacks).float()
        return replace(batch, stacks=stacks, next_stacks=next_stacks), values

    def learn(self, prepared: Sequence[tuple[Batch, torch.Tensor]], rate_left: float = 1.0) -> None:
        """Make one update, by the mean over all steps of the batches; `learned` tells of it.

        Args:
            prepared: what `prepared` returned, of each batch.
            rate_left: the share of the settings' learning rate that this update has.
        """
        for group in self._optimiser.param_groups:
            group["lr"] = self._settings.learning_rate * rate_left
        batches = [batch for batch, _ in prepared]
        steps = sum(len(batch.actions) for batch in batches)
        sums = torch.zeros(2, device=self.device)
        targets = [self._targets(batch, values) for batch, values in prepared]
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
        self._sums = torch.cat([sums / steps, norm.reshape(1)])
        self._latest = batches

    @property
    def learned(self) -> Learned:
        """The latest update. A GPU is waited for here alone."""
        return Learned(*self._sums.tolist())

    def _loss(self, batch: Batch, expected: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return a batch's summed loss, and the sum of its temporal differences' sizes."""
        with self._autocast():
            values = self.model(batch.stacks)
        values = values.float().gather(1, batch.actions.unsqueeze(1)).squeeze(1)
        errors = (values.detach() - expected).abs().sum()
        return functional.smooth_l1_loss(values, expected, reduction="sum"), errors

    @torch.no_grad()
    def _targets(self, batch: Batch, values: torch.Tensor) -> torch.Tensor:
        """Return the target values, (n,) float32, of a batch's actions; values: (n, actions)."""
        best = values.max(dim=1).values
        if self._settings.double:
            self.model.eval()
            with self._autocast():
                chosen = self.model(batch.next_stacks).argmax(dim=1, keepdim=True)
            self.model.train()
            best = values.gather(1, chosen).squeeze(1)
        # Where an episode terminated the frames mean nothing, and the discount is 0.
        return batch.returns + batch.discounts * best

    def _clip(self) -> torch.Tensor:
        """Return the gradient's norm, and hold it to the limit if there is one."""
        parameters = list(self.model.parameters())
        norm = nn.utils.get_total_norm([parameter.grad for parameter in parameters])
        if self._settings.gradient_clip:
            nn.utils.clip_grads_with_norm_(parameters, self._settings.gradient_clip, norm)
        return norm

    def update_target(self) -> None:
        """Copy weights and averages to the target network."""
        self._average()
        self._target.load_state_dict(self.model.state_dict())

    def weights(self) -> dict[str, np.ndarray]:
        """Return float32 weights for those who play: the same names and shapes at any time."""
        self._average()
        return weights_for_acting(self.model)

    @torch.no_grad()
    def _average(self) -> None:
        """Take the averages of BatchNorm anew, by the present weights, over the latest batches."""
        layers = [layer for layer in self.model.modules() if isinstance(layer, nn.BatchNorm2d)]
        if not (layers and self._latest):
            return
        for layer in layers:
            layer.reset_running_stats()
        with self._autocast():
            for batch in self._latest:
                self.model(batch.stacks)

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
