"""The Q-network of pixels in PyTorch, and its weights for acting."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from goalreel.policies.pixel_network import NETWORKS, side_after

WHITE = 255.0


class PixelNetwork(nn.Module):
    """Convolutions and two dense layers, from uint8 frame stacks to action values.

    With `dueling`, the last layer gives advantages, and a separate layer the value of the state
    (Z. Wang et al., "Dueling Network Architectures", 2016, equation 9).
    """

    def __init__(self, actions: int, stack: int, network: str = "nature", dueling: bool = False):
        """Create random weights from PyTorch's generator."""
        super().__init__()
        convolutions, hidden = NETWORKS[network]
        layers: list[nn.Module] = []
        channels = stack
        for filters, kernel, stride in convolutions:
            layers += [nn.Conv2d(channels, filters, kernel, stride), nn.ReLU(inplace=True)]
            channels = filters
        self.convolutions = nn.Sequential(*layers)
        side = side_after(tuple(kernel for _, kernel, _ in convolutions))
        self.hidden = nn.Linear(channels * side**2, hidden)
        self.values = nn.Linear(hidden, actions)
        self.state_value = nn.Linear(hidden, 1) if dueling else None

    def forward(self, stacks: torch.Tensor) -> torch.Tensor:
        """Return the action values, (n, actions), of (n, stack, 84, 84) uint8 stacks."""
        # bfloat16 and float16 represent all bytes. Autocast would convert by way of float32, and an
        # update would take up to 1.6 times as long.
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
    """Return float32 weights by name, for pixel_network.Actor.

    Each layer has a `weight` and a `bias` with PyTorch's shapes. The first convolution includes the
    scale of pixels, and the last layer the value of the state.
    """
    layers = {f"convolution{n}": layer for n, layer in enumerate(network.convolutions[::2])}
    layers |= {"hidden": network.hidden, "values": network.values}
    weights = {}
    for name, layer in layers.items():
        for kind in ("weight", "bias"):
            array = getattr(layer, kind).cpu()
            if (name, kind) == ("convolution0", "weight"):
                array = array.double() / WHITE
            elif name == "values" and network.state_value is not None:
                array = array - array.mean(0) + getattr(network.state_value, kind).cpu()
            weights[f"{name}.{kind}"] = np.array(array.numpy(), np.float32, order="C")
    return weights
