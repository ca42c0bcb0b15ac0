"""The Q-network of the pixel pipeline, in PyTorch, and its weights as collectors take them.

The layers' sizes stand in learner_settings; how it is trained in pixel_learner, and how collectors
compute the same without PyTorch in acting.
"""

import numpy as np
import torch
from torch import nn

from goalreel.training.pixels.learner_settings import CONVOLUTIONS, HIDDEN, side_after_convolutions

WHITE = 255.0


class PixelNetwork(nn.Module):
    """Convolutions, each with BatchNorm and ReLU, then two layers: uint8 stacks to values.

    A bias before BatchNorm would be taken away by it, so the convolutions have none. Weights begin
    as K. He et al., "Delving Deep into Rectifiers" (2015), equation 10 has them.
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
        self._initialise(torch.Generator().manual_seed(seed))

    def _initialise(self, dice: torch.Generator) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                after = "linear" if module is self.values else "relu"
                nn.init.kaiming_normal_(module.weight, nonlinearity=after, generator=dice)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, stacks: torch.Tensor) -> torch.Tensor:
        """Return the values, (n, actions), of (n, stack, 84, 84) uint8 stacks."""
        seen = self.convolutions(stacks.to(_precision(stacks.device)).mul_(1 / WHITE))
        return self.values(nn.functional.relu_(self.hidden(seen.flatten(1))))


def _precision(device: torch.device) -> torch.dtype:
    """Return the type that convolutions compute in, which all bytes have a number of.

    By way of float32, as autocast would go from bytes, an update takes up to 1.6 times as long.
    """
    if torch.is_autocast_enabled(device.type):
        return torch.get_autocast_dtype(device.type)
    return torch.float32


@torch.no_grad()
def weights_for_acting(network: PixelNetwork) -> dict[str, np.ndarray]:
    """Return float32 weights by name, as acting.Actor takes them.

    Of each layer its `weight` and `bias`, shaped as PyTorch has them. A BatchNorm with its running
    averages is folded into the convolution before it, and the scale of pixels into the first.
    """
    found, place = {}, 0
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
            found |= {f"convolution{place}.weight": weight / scale}
            found |= {f"convolution{place}.bias": bias}
            place += 1
    for name in ("hidden", "values"):
        layer = getattr(network, name)
        found |= {f"{name}.weight": layer.weight.cpu(), f"{name}.bias": layer.bias.cpu()}
    return {name: np.array(tensor.numpy(), np.float32, order="C") for name, tensor in found.items()}
