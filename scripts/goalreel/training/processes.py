"""The equal processes of a training, which average their gradients.

Each plays its share of the environments and computes its share of each batch. All make the same
updates, so that their weights stay equal. They wait for each other, and so the same seed and number
of processes give the same weights.
"""

import multiprocessing
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist

from goalreel.errors import GoalreelError, Stopped

_TIMEOUT = timedelta(hours=1)  # for the slowest evaluation of another process
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Group:
    """The processes of a training, as one of them sees it."""

    def __init__(self, rank: int = 0, size: int = 1, rendezvous: str = ""):
        """Join the group. rendezvous: the path of a file that all processes name."""
        self.rank, self.size = rank, size
        if size > 1:
            # The processes are on one machine, whose name may not resolve.
            loopback = "lo0" if sys.platform == "darwin" else "lo"
            os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback)
            dist.init_process_group(
                "gloo", f"file://{rendezvous}", rank=rank, world_size=size, timeout=_TIMEOUT
            )

    def share(self, count: int) -> range:
        """Return this process's part of `count` items."""
        first, last = (count * rank // self.size for rank in (self.rank, self.rank + 1))
        return range(first, last)

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """Return the sum of a tensor over all processes, which replaces it."""
        if self.size > 1:
            dist.all_reduce(values)
        return values

    def gather(self, value: object) -> list:
        """Return the values of all processes, in order."""
        if self.size == 1:
            return [value]
        values = [None] * self.size
        dist.all_gather_object(values, value)
        return values

    def gather_to_first(self, value: object) -> list | None:
        """Return the values of all processes, in order, to the first one; None to others."""
        if self.size == 1:
            return [value]
        values = None if self.rank else [None] * self.size
        dist.gather_object(value, values)
        return values

    def descend(self, loss: torch.Tensor, optimizer: torch.optim.Optimizer, limit: float) -> None:
        """Make a step with the mean gradients of all processes, whose norm has a limit if not 0."""
        parameters = optimizer.param_groups[0]["params"]
        optimizer.zero_grad()
        loss.backward()
        grads = [parameter.grad for parameter in parameters if parameter.grad is not None]
        if self.size > 1:
            flat = self.sum(torch.cat([grad.flatten() for grad in grads])).div_(self.size)
            for grad, mean in zip(grads, flat.split([grad.numel() for grad in grads]), strict=True):
                grad.copy_(mean.view_as(grad))
        if limit:
            norm = torch.nn.utils.get_total_norm(grads)
            if norm > limit:  # most are not, and would be multiplied by 1
                torch.nn.utils.clip_grads_with_norm_(parameters, limit, norm)
        optimizer.step()


def run_group(size: int, function: Callable, *arguments: object) -> object:
    """Call `function(group, *arguments)` in `size` processes, and return this one's value.

    This process is the first. If another one ends early, so does this one. Raises GoalreelError
    then, with the other's message if it has one.
    """
    if size == 1:
        return function(Group(), *arguments)
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rendezvous")
        messages, ready = spawn.SimpleQueue(), spawn.Semaphore(0)
        values = function, path, size, messages, ready, arguments
        child_of = partial(spawn.Process, target=_run_child, daemon=True)
        children = [child_of(args=(rank, *values)) for rank in range(1, size)]
        for child in children:
            child.start()
        try:
            # Gloo would wait for an hour for one that ended while it started, and hear no signal.
            for _ in children:
                while not ready.acquire(timeout=0.1):
                    if any(child.exitcode for child in children):
                        raise RuntimeError("A process has not started.")
            return function(Group(0, size, path), *arguments)
        except RuntimeError as error:  # gloo lost a process
            for child in children:
                child.join(1)
            if not messages.empty():
                raise GoalreelError(messages.get()) from None
            if codes := [child.exitcode for child in children if child.exitcode]:
                ways = ", ".join(map(_way, codes))
                text = f"A process of the training ended ({ways}). Run the same command again."
                raise GoalreelError(text) from error
            raise
        finally:
            for child in children:
                child.join(5)
                if child.is_alive():
                    child.kill()
            if dist.is_initialized():
                dist.destroy_process_group()


def _way(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"


def _run_child(rank, function, path, size, messages, ready, arguments) -> None:
    # The first process handles signals for all.
    for number in _STOPS:
        signal.signal(number, signal.SIG_IGN)
    ready.release()
    try:
        function(Group(rank, size, path), *arguments)
    except Stopped:
        pass
    except GoalreelError as error:
        messages.put(str(error))
        sys.exit(1)
    except RuntimeError as error:
        if "gloo" not in str(error) and "Connection" not in str(error):
            raise
        sys.exit(2)  # the first process ended, and says why


@contextmanager
def interrupts() -> Iterator[list[str]]:
    """Handle Ctrl-C, SIGTERM and a closed terminal as requests to stop, to save a training."""
    # Yields a list, to which the first signal adds its name. A second has its usual effect.
    names = []

    def restore() -> None:
        for number, handler in handlers.items():
            signal.signal(number, handler)

    def note(number: int, _) -> None:
        names.append(signal.Signals(number).name)
        restore()

    heard = [number for number in _STOPS if signal.getsignal(number) != signal.SIG_IGN]  # nohup
    handlers = {number: signal.signal(number, note) for number in heard}
    try:
        yield names
    finally:
        restore()
