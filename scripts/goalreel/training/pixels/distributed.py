"""Learning on several GPUs at once, a process for each, by PyTorch's DistributedDataParallel.

The process that holds the replay buffer and the collectors is rank 0. It starts the others, hands
each its share of an update's batches through shared memory (a descriptor that it inherits) and
tells it by a line on its standard input what to do; all are on one machine. A share is whole
batches, so each is normalised as it would be in one process (which is why there is no
SyncBatchNorm), and an update is the same. The running averages, which targets use, are the mean of
those of all ranks: not quite what one process finds that takes one batch after another.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields, replace
from datetime import timedelta
from pathlib import Path

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from goalreel.errors import GoalreelError
from goalreel.training.pixels.frame_replay_buffer import Batch
from goalreel.training.pixels.learner import Learned, PixelLearner, device_of
from goalreel.training.pixels.learner_settings import SIDE, LearnerSettings
from goalreel.training.shared_memory import blocks, child_process

_MODULE = "goalreel.training.pixels.distributed"
_PATIENCE = timedelta(minutes=10)  # for another rank, that may be compiling
_ENDING = 30.0  # seconds for another rank to end by itself
_COLUMNS = {"actions": "<i8", "rewards": "<f4", "terminated": "?"}


class Member(PixelLearner):
    """A learner whose updates follow the mean gradient of all ranks."""

    def __init__(
        self, settings: LearnerSettings, actions: int, seed: int, rank: int, ranks: int, folder: str
    ):
        """Meet the other ranks by a file in `folder`, and begin as PixelLearner does."""
        cuda = device_of(settings.device).type == "cuda"
        if cuda:
            torch.cuda.set_device(rank)
        distributed.init_process_group(
            "nccl" if cuda else "gloo",
            init_method=Path(folder, "meeting").as_uri(),
            rank=rank,
            world_size=ranks,
            timeout=_PATIENCE,
        )
        super().__init__(settings, actions, seed)
        self._ranks = ranks
        self._trained = DistributedDataParallel(self.model, forward_sync_buffers=False)

    def _gathering(self, last: bool) -> contextlib.AbstractContextManager:
        """Average over the ranks with an update's last batch alone."""
        return contextlib.nullcontext() if last else self._trained.no_sync()

    def _gathered(self, means: torch.Tensor) -> torch.Tensor:
        """Return the means over all ranks, and let the running averages be theirs too."""
        averages = [b for b in self.model.buffers() if b.is_floating_point()]
        for tensor in (means, *averages):
            distributed.all_reduce(tensor)
            tensor /= self._ranks
        return means


class Leader(Member):
    """Rank 0: takes the batches of all ranks, and has the others do what it does."""

    def __init__(self, settings: LearnerSettings, actions: int, seed: int, ranks: int):
        """Start the other ranks; `settings.accumulation` is what all do together.

        Raises GoalreelError if the batches cannot be shared out evenly.
        """
        if settings.accumulation % ranks:
            raise GoalreelError(
                f"pixels.accumulation: {settings.accumulation} batches cannot be shared out to "
                f"{ranks} GPUs; allowed: a multiple of {ranks}"
            )
        self._resources = contextlib.ExitStack()
        try:
            self._start(settings, actions, seed, ranks)
        except BaseException:
            self._resources.close()
            raise

    def _start(self, settings: LearnerSettings, actions: int, seed: int, ranks: int) -> None:
        self._folder = self._resources.enter_context(
            tempfile.TemporaryDirectory(prefix="goalreel-")
        )
        self._each = settings.accumulation // ranks
        share = share_fields(settings, self._each)
        self._shares, self._others = [], []
        for rank in range(1, ranks):
            fd = blocks.create(blocks.layout(share)[1])
            self._resources.callback(os.close, fd)
            self._shares.append(blocks.arrays(fd, share))
            told = (asdict(settings), actions, seed, rank, ranks, self._folder, fd)
            self._others.append(self._resources.enter_context(_started(told, fd)))
        super().__init__(settings, actions, seed, 0, ranks, self._folder)
        self._resources.callback(distributed.destroy_process_group)

    def learn(self, batches: Sequence[Batch]) -> Learned:
        """Make one update, by the mean over all steps of `accumulation` batches of one size.

        Raises GoalreelError if another rank has ended.
        """
        for place, share in enumerate(self._shares, 1):
            mine = batches[place * self._each : (place + 1) * self._each]
            for number, batch in enumerate(mine):
                for name, array in vars(batch).items():
                    share[name][number] = array
        self._tell("learn")
        try:
            return super().learn(batches[: self._each])
        except RuntimeError:  # of gloo or NCCL
            self._look_after()
            raise

    def update_target(self) -> None:
        """Have the target networks of all ranks take over weights and running averages."""
        self._tell("update_target")
        super().update_target()

    def load(self, state: dict) -> None:
        """Go on from a state, on all ranks; raises as PixelLearner does."""
        super().load(state)
        torch.save(state, path := Path(self._folder, "state.pt"))
        self._tell(f"load {path}")

    def close(self) -> None:
        """End the other ranks: they are told, and killed if they do not; give up what is shared."""
        try:
            for process in self._others:
                with contextlib.suppress(OSError):  # what one that has ended was told
                    process.stdin.close()
            for process in self._others:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_ENDING)
        finally:
            self._resources.close()

    def _tell(self, line: str) -> None:
        for process in self._others:
            try:
                process.stdin.write(f"{line}\n")
                process.stdin.flush()
            except OSError:
                self._look_after()
                raise

    def _look_after(self) -> None:
        """Raise GoalreelError if another rank has ended, or does so now."""
        for rank, process in enumerate(self._others, 1):
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = process.wait(timeout=5)
                raise GoalreelError(
                    f"process {rank} of the learner has ended ({child_process.told(status)})"
                )


@contextlib.contextmanager
def make_learner(
    settings: LearnerSettings, actions: int, seed: int, ranks: int | None = None
) -> Iterator[PixelLearner]:
    """Yield a learner on all GPUs, or on the CPU; `ranks` is their number unless it is told.

    Raises GoalreelError as PixelLearner and Leader do.
    """
    cuda = device_of(settings.device).type == "cuda"
    ranks = ranks or (torch.cuda.device_count() if cuda else 1)
    if ranks == 1:
        yield PixelLearner(settings, actions, seed)
        return
    leader = Leader(settings, actions, seed, ranks)
    try:
        yield leader
    finally:
        leader.close()


def share_fields(settings: LearnerSettings, batches: int) -> blocks.Fields:
    """Return the fields of a rank's share of an update: so many batches."""
    rows = (batches, settings.batch)
    stacks = ("u1", (*rows, settings.stack, SIDE, SIDE))
    columns = {name: (dtype, rows) for name, dtype in _COLUMNS.items()}
    return {"stacks": stacks, "next_stacks": stacks, **columns}


@contextlib.contextmanager
def _started(told: tuple, fd: int) -> Iterator[subprocess.Popen]:
    """Yield the process of another rank; it is ended if it has not ended."""
    argument = json.dumps(told)
    process = child_process.start(sys.executable, _MODULE, argument, pass_fds=[fd], text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        with contextlib.suppress(OSError):
            process.stdin.close()


def follow(told: list) -> None:
    """Do what rank 0 tells on standard input, until it ends."""
    settings, actions, seed, rank, ranks, folder, fd = told
    torch.set_num_threads(1)
    settings = LearnerSettings(**settings)
    each = settings.accumulation // ranks
    share = blocks.arrays(fd, share_fields(settings, each))
    names = [field.name for field in fields(Batch)]
    learner = Member(replace(settings, accumulation=each), actions, seed, rank, ranks, folder)
    for line in sys.stdin:
        command, _, path = line.strip().partition(" ")
        if command == "learn":
            learner.learn([Batch(*(share[name][n] for name in names)) for n in range(each)])
        elif command == "update_target":
            learner.update_target()
        elif command == "load":
            learner.load(torch.load(path, weights_only=True))
    distributed.destroy_process_group()


if __name__ == "__main__":
    follow(json.loads(sys.argv[1]))
