"""The networks of a training in PyTorch, and their weights for films."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from goalreel.environments.gymnasium_ids import import_module
from goalreel.errors import OptionError

# Convolutions (filters, side of the kernel, stride) and units of the hidden layer, by name, from
# V. Mnih et al., "Playing Atari with Deep Reinforcement Learning" (2013), section 4.1, and of
# "Human-level control through deep reinforcement learning" (2015), "Model architecture".
# `narrow` has half of the latter's filters and units. `tiny` is for frames of 42x42 pixels.
NETWORKS = {
    "small": (((16, 8, 4), (32, 4, 2)), 256),
    "nature": (((32, 8, 4), (64, 4, 2), (64, 3, 1)), 512),
    "narrow": (((16, 8, 4), (32, 4, 2), (32, 3, 1)), 256),
    "tiny": (((16, 6, 3), (32, 3, 2)), 256),
}


class TorchNetwork(nn.Module):
    """Features of an observation, a value for each action, and the value of the state.

    The values of actions are the logits of PPO, and the action values or advantages of DQN. States
    have a second body for the value of the state.
    """

    def __init__(self, shape: Sequence[int], num_actions: int, network, low, high):
        """Create random weights from PyTorch's generator, for observations of a shape.

        `network` is a name in NETWORKS, hidden units, or "module:callable", which returns the body,
        a module from (batch, *shape) float32 to (batch, features), given `shape`. The values `low`
        and `high`, each a number or (n,), enter as -1 and 1.
        """
        super().__init__()
        middle = (torch.as_tensor(low) + torch.as_tensor(high)) / 2
        self.register_buffer("offset", middle.float(), persistent=False)
        self.register_buffer("scale", (torch.as_tensor(high) - middle).float(), persistent=False)
        self._has_offset = bool(middle.any())
        self.body = make_body(shape, network)
        self.is_own = is_own(network)
        is_mlp = len(shape) == 1 and not self.is_own
        self.state_body = make_body(shape, network) if is_mlp else None
        with torch.no_grad():
            features = self.body(torch.zeros(1, *shape)).shape[1]
        self.actions, self.state = nn.Linear(features, num_actions), nn.Linear(features, 1)

    @property
    def strides(self) -> list[int]:
        """The strides of the convolutions."""
        return [layer.stride[0] for layer in self.body.modules() if isinstance(layer, nn.Conv2d)]

    def forward(
        self, obs: torch.Tensor, dtype: torch.dtype = torch.float32
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return (n, num_actions) and (n,) float32 values of (n, *shape) observations.

        dtype: in which the body computes; bfloat16 represents all bytes
        """
        # A context for each call, since it keeps the weights that it has cast.
        with torch.autocast(obs.device.type, dtype, enabled=dtype != torch.float32):
            if obs.ndim == 4 and not self.is_own:
                features = other = self._see(obs, dtype)
            else:
                obs = (obs.contiguous() - self.offset) / self.scale
                features = self.body(obs)
                other = features if self.state_body is None else self.state_body(obs)
        return self.actions(features.float()), self.state(other.float())[:, 0]

    def _see(self, obs: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Return the features of frames, whose scale is that of the first layer's weights."""
        # To normalize the frames themselves would take as long as all layers.
        obs = obs.contiguous(memory_format=torch.channels_last).to(dtype)  # bytes are moved faster
        if self._has_offset:
            obs = obs.sub_(self.offset)  # whole numbers, also in bfloat16
        first, *layers = self.body
        units = functional.conv2d(obs, first.weight / self.scale, first.bias, first.stride)
        for layer in layers:
            units = layer(units)
        return units


def is_own(network) -> bool:
    """Return whether the option `train.network` names a user's own body."""
    return isinstance(network, str) and network not in NETWORKS


def make_body(shape: Sequence[int], network) -> nn.Module:
    """Return a module from observations to features, see TorchNetwork."""
    if is_own(network):
        return own_body(network, shape)
    layers: list[nn.Module] = []
    if len(shape) == 3:
        convolutions, hidden = NETWORKS[network]
        channels, side = shape[0], shape[1]
        for filters, kernel, stride in convolutions:
            layers += [nn.Conv2d(channels, filters, kernel, stride), nn.ReLU(inplace=True)]
            channels, side = filters, (side - kernel) // stride + 1
        layers += [nn.Flatten()]
        sizes = [channels * side**2, hidden]
    else:
        sizes = [math.prod(shape), *network]
    for inputs, outputs in zip(sizes, sizes[1:], strict=False):
        layers += [nn.Linear(inputs, outputs), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


def own_body(name: str, shape: Sequence[int]) -> nn.Module:
    """Return what the user's `module:callable` returns for a shape. Raises OptionError."""
    module, _, attribute = name.partition(":")
    try:
        body = getattr(import_module(module), attribute)(tuple(shape))
        with torch.no_grad():
            features = body(torch.zeros(2, *shape))
    except Exception as error:  # the user's code
        text = f"{type(error).__name__}: {error}".partition("\n")[0]
        problem = f"{name!r} cannot be made ({text})"
        raise OptionError("train.network", f"{problem}. Correct it, or its name.") from error
    if not isinstance(body, nn.Module) or features.ndim != 2 or len(features) != 2:
        problem = f"{name!r} gives {tuple(features.shape)} for 2 observations"
        raise OptionError("train.network", f"{problem}. Return features (batch, n).")
    return body.eval()  # as films play it, without dropout


@torch.no_grad()
def weights_for_acting(network: TorchNetwork, dueling: bool = False) -> dict[str, np.ndarray]:
    """Return float32 weights by name, for numpy_network.NumpyNetwork.

    Each layer has a `weight` and a `bias` with PyTorch's shapes. The first includes the scale and
    the offset of observations, and the last of a dueling network the value of the state. The two
    bodies of a dueling network of states become one. An own body keeps PyTorch's names, behind
    `body.`.
    """
    bodies = [network.body] + [network.state_body] * (dueling and network.state_body is not None)
    head = _folded_head(network, dueling, len(bodies) > 1)
    if network.is_own:
        state = {f"body.{k}": v.cpu().numpy().copy() for k, v in network.body.state_dict().items()}
        return state | _named("dense0", *head)
    kinds = nn.Conv2d | nn.Linear
    pairs = ([part for part in body.modules() if isinstance(part, kinds)] for body in bodies)
    weights, convolutions, dense = {}, 0, 0
    for place, same in enumerate(zip(*pairs, strict=True)):
        parts = [layer.weight.cpu().double() for layer in same]
        weight = torch.block_diag(*parts) if place and len(parts) > 1 else torch.cat(parts)
        bias = torch.cat([layer.bias.cpu().double() for layer in same])
        if place == 0:
            weight = weight / network.scale.cpu().double()
            offset = weight * network.offset.cpu().double()
            bias = bias - offset.flatten(1).sum(1)
        if weight.ndim == 4:
            name, convolutions = f"convolution{convolutions}", convolutions + 1
        else:
            name, dense = f"dense{dense}", dense + 1
        weights |= _named(name, weight, bias)
    return weights | _named(f"dense{dense}", *head)


def _folded_head(
    network: TorchNetwork, dueling: bool, has_two_bodies: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return weight and bias of the last layer, with the value of the state if `dueling`."""
    pair = []
    for kind in ("weight", "bias"):
        array = getattr(network.actions, kind).cpu().double()
        if dueling:
            state = getattr(network.state, kind).cpu().double().expand_as(array)
            array = array - array.mean(0)
            is_apart = has_two_bodies and kind == "weight"
            array = torch.cat([array, state], 1) if is_apart else array + state
        pair.append(array)
    return tuple(pair)


def _named(name: str, weight: torch.Tensor, bias: torch.Tensor) -> Mapping[str, np.ndarray]:
    pairs = zip(("weight", "bias"), (weight, bias), strict=True)
    return {f"{name}.{k}": np.array(v.numpy(), np.float32, order="C") for k, v in pairs}


class OwnNetwork:
    """A user's own network with the weights of a checkpoint, for films."""

    def __init__(self, weights: Mapping[str, np.ndarray], settings: Mapping):
        """Create the network. settings: of the network file. Raises OptionError."""
        torch.set_num_threads(1)
        low, high = map(torch.tensor, settings["bounds"])
        self._offset, self._scale = (low + high) / 2, (high - low) / 2
        self._body = own_body(settings["module"], settings["obs_shape"])
        tensors = {name: torch.from_numpy(array) for name, array in weights.items()}
        body = {k.removeprefix("body."): v for k, v in tensors.items() if k.startswith("body.")}
        try:
            self._body.load_state_dict(body)
        except RuntimeError as error:  # its shapes or names
            problem = f"Its weights do not fit the present {settings['module']!r}"
            raise OptionError("policy.file", f"{problem}. Restore it, or train again.") from error
        self._head = tensors["dense0.weight"], tensors["dense0.bias"]

    @torch.no_grad()
    def decide(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the best actions, (n,) int64, and all values, each row computed by itself."""
        obs = (torch.from_numpy(observations).float() - self._offset) / self._scale
        values = torch.cat([functional.linear(self._body(one[None]), *self._head) for one in obs])
        return values.argmax(1).numpy(), values.numpy()
