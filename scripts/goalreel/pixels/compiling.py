"""`torch.compile`, tried once: where there is no compiler, a training goes on without."""

import copy

import torch
from torch import nn

from goalreel.program import say


def compiled(network: nn.Module, stacks: torch.Tensor, autocast: torch.autocast) -> bool:
    """Compile a network in place, as far as that works; tell whether it did.

    What is compiled first, by an example of what it will be given, is one pass forwards and back:
    PyTorch looks for its compilers no earlier. The network's weights and averages stay as they are.
    A failure is said in one line.
    """
    kept = copy.deepcopy(network.state_dict())
    network.compile()
    try:
        with autocast:
            values = network(stacks)
        values.float().sum().backward()
    except Exception as error:  # of Dynamo, of Inductor, of the compilers, of many kinds
        network._compiled_call_impl = None  # as before Module.compile
        told = str(error).strip().splitlines()
        say(f"learner.compile: going on without ({told[0] if told else type(error).__name__})")
        return False
    finally:
        network.zero_grad()
        network.load_state_dict(kept)
    return True
