"""The Q-network in PyTorch, its weights as they are published, and playing by these."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from goalreel.policies.pixel_network import NETWORKS, STRIDES, side_after

WHITE = 255.0


class PixelNetwork(nn.Module):
    """Convolutions, each with ReLU, then two layers: uint8 stacks to values.

    With `normalise`, BatchNorm comes after each convolution, which then has no bias, since it would
    be taken away, and weights begin as in K. He et al., "Delving Deep into Rectifiers" (2015),
    equation 10; without it as PyTorch's layers do. With `dueling`, the last layer gives advantages,
    and another the value of the state (Z. Wang et al., "Dueling Network Architectures", 2016,
    equation 9).
    """

    def __init__(
        self,
        actions: int,
        stack: int,
        network: str = "nature",
        normalise: bool = False,
        dueling: bool = False,
    ):
        """Begin with random weights, of PyTorch's generator."""
        super().__init__()
        convolutions, hidden = NETWORKS[network]
        layers: list[nn.Module] = []
        channels = stack
        for filters, kernel, stride in convolutions:
            layers.append(nn.Conv2d(channels, filters, kernel, stride, bias=not normalise))
            # Averages over all that was seen since their last reset, not running ones.
            layers += [nn.BatchNorm2d(filters, momentum=None)] if normalise else []
            layers.append(nn.ReLU(inplace=True))
            channels = filters
        self.convolutions = nn.Sequential(*layers)
        side = side_after(tuple(kernel for _, kernel, _ in convolutions))
        self.hidden = nn.Linear(channels * side**2, hidden)
        self.values = nn.Linear(hidden, actions)
        self.state_value = nn.Linear(hidden, 1) if dueling else None
        if normalise:
            for module in self.modules():
                if isinstance(module, nn.Conv2d | nn.Linear):
                    last = module in (self.values, self.state_value)
                    nn.init.kaiming_normal_(
                        module.weight, nonlinearity="linear" if last else "relu"
                    )
                    if module.bias is not None:
                        nn.init.zeros_(module.bias)

    def forward(self, stacks: torch.Tensor) -> torch.Tensor:
        """Return the values, (n, actions), of (n, stack, 84, 84) uint8 stacks."""
        # All bytes have a number in this type. By way of float32, as autocast would go from
        # bytes, an update takes up to 1.6 times as long.
        half = torch.is_autocast_enabled(stacks.device.type)
        dtype = torch.get_autocast_dtype(stacks.device.type) if half else torch.float32
        features = self.convolutions(stacks.to(dtype).mul_(1 / WHITE))
        features = functional.relu_(self.hidden(features.flatten(1)))
        values = self.values(features).float()
        if self.state_value is None:
            return values
        return values - values.mean(1, keepdim=True) + self.state_value(features).float()


@torch.no_grad()
def weights_for_acting(network: PixelNetwork) -> dict[str, np.ndarray]:
    """Return float32 weights by name, as pixel_network.Actor and TorchActor take them.

    Of each layer its `weight` and `bias`, shaped as PyTorch has them. A BatchNorm with its averages
    is folded into the convolution before it, the scale of pixels into the first, and the value of
    the state into the last layer.
    """
    weights, place = {}, 0
    for module in network.convolutions:
        if isinstance(module, nn.Conv2d):
            weight = module.weight.detach().cpu().double()
            bias = torch.zeros(len(weight)) if module.bias is None else module.bias.cpu()
            bias = bias.double()
        elif isinstance(module, nn.BatchNorm2d):
            mean, variance, gain, shift = (
                tensor.cpu().double()
                for tensor in (module.running_mean, module.running_var, module.weight, module.bias)
            )
            gain = gain / torch.sqrt(variance + module.eps)
            weight, bias = weight * gain[:, None, None, None], (bias - mean) * gain + shift
        else:
            scale = WHITE if place == 0 else 1.0
            weights[f"convolution{place}.weight"] = weight / scale
            weights[f"convolution{place}.bias"] = bias
            place += 1
    for name in ("hidden", "values"):
        layer = getattr(network, name)
        for kind in ("weight", "bias"):
            array = getattr(layer, kind).cpu()
            if name == "values" and network.state_value is not None:
                array = array - array.mean(0) + getattr(network.state_value, kind).cpu()
            weights[f"{name}.{kind}"] = array
    return {name: np.array(t.numpy(), np.float32, order="C") for name, t in weights.items()}


class TorchActor:
    """Published weights, as pixel_network.Actor plays them, but by PyTorch, which is faster."""

    def __init__(self, weights: Mapping[str, np.ndarray]):
        """Take copies of the weights."""
        self._weights = {name: torch.tensor(array) for name, array in weights.items()}
        convolutions = sum(array.ndim == 4 for array in weights.values())
        self._strides = STRIDES[:convolutions]

    @torch.inference_mode()
    def values(self, stacks: np.ndarray) -> np.ndarray:
        """Return the values, (n, actions) float32, of (n, stack, 84, 84) uint8 stacks."""
        weights, features = self._weights, torch.from_numpy(stacks).float()
        for place, stride in enumerate(self._strides):
            name = f"convolution{place}"
            features = functional.conv2d(
                features, weights[f"{name}.weight"], weights[f"{name}.bias"], stride
            ).relu_()
        features = functional.linear(
            features.flatten(1), weights["hidden.weight"], weights["hidden.bias"]
        ).relu_()
        return functional.linear(features, weights["values.weight"], weights["values.bias"]).numpy()
