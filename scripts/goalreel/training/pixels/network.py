"""The Q-network in PyTorch, and its weights as collectors take them."""

import numpy as np
import torch
from torch import nn

from goalreel.training.pixels.settings import CONVOLUTIONS, HIDDEN, side_after_convolutions

WHITE = 255.0


class PixelNetwork(nn.Module):
    """Convolutions, each with BatchNorm and ReLU, then two layers: uint8 stacks to values.

    BatchNorm would take a bias before it away, so the convolutions have none. Weights begin as in
    K. He et al., "Delving Deep into Rectifiers" (2015), equation 10.
    """

    def __init__(self, actions: int, stack: int, normalise: bool = True, seed: int = 0):
        """Begin with random weights, the same for the same seed."""
        super().__init__()
        layers: list[nn.Module] = []
        channels = stack
        for filters, kernel, stride in CONVOLUTIONS:
            layers.append(nn.Conv2d(channels, filters, kernel, stride, bias=not normalise))
            layers += [nn.BatchNorm2d(filters)] if normalise else []
            layers.append(nn.ReLU(inplace=True))
            channels = filters
        self.convolutions = nn.Sequential(*layers)
        self.hidden = nn.Linear(channels * side_after_convolutions() ** 2, HIDDEN)
        self.values = nn.Linear(HIDDEN, actions)
        rng = torch.Generator().manual_seed(seed)
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nonlinearity = "linear" if module is self.values else "relu"
                nn.init.kaiming_normal_(module.weight, nonlinearity=nonlinearity, generator=rng)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, stacks: torch.Tensor) -> torch.Tensor:
        """Return the values, (n, actions), of (n, stack, 84, 84) uint8 stacks."""
        # All bytes have a number in this type. By way of float32, as autocast would go from
        # bytes, an update takes up to 1.6 times as long.
        half = torch.is_autocast_enabled(stacks.device.type)
        dtype = torch.get_autocast_dtype(stacks.device.type) if half else torch.float32
        features = self.convolutions(stacks.to(dtype).mul_(1 / WHITE))
        return self.values(nn.functional.relu_(self.hidden(features.flatten(1))))


@torch.no_grad()
def weights_for_acting(network: PixelNetwork) -> dict[str, np.ndarray]:
    """Return float32 weights by name, as policies.pixel_network.Actor takes them.

    Of each layer its `weight` and `bias`, shaped as PyTorch has them. A BatchNorm with its running
    averages is folded into the convolution before it, and the scale of pixels into the first.
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
        weights |= {f"{name}.weight": layer.weight.cpu(), f"{name}.bias": layer.bias.cpu()}
    return {name: np.array(t.numpy(), np.float32, order="C") for name, t in weights.items()}
