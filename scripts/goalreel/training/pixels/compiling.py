"""`torch.compile`, tried once: where there is no compiler, a training goes on without."""

import copy

import torch
from torch import nn

from goalreel.cli import say


def compile_both(
    network: nn.Module, target: nn.Module, stacks: torch.Tensor, autocast: torch.autocast
) -> None:
    """Compile the networks in place, if that works; otherwise say so in one line.

    All that an update computes is compiled here, by an example of what it will be given: PyTorch
    looks for its compilers no earlier, and a training does not wait later. Weights and averages
    stay as they are.
    """
    kept = copy.deepcopy(network.state_dict())
    both = (network, target)
    for one in both:
        one.compile()
    try:
        with autocast:
            values = network(stacks)
        values.float().sum().backward()
        for one in both:
            with torch.no_grad(), autocast:
                one.eval()(stacks)
    except Exception as error:  # of Dynamo, of Inductor, of the compilers, of many kinds
        for one in both:
            one._compiled_call_impl = None  # as before Module.compile
        told = str(error).strip().splitlines()
        say(f"torch.compile: going on without ({told[0] if told else type(error).__name__})")
    finally:
        network.train().zero_grad()
        network.load_state_dict(kept)
