"""The replay buffer of frames: each is held once, and stacked when it is sampled.

Every environment has a ring of its own, its steps in order. A step holds the frame of its
observation, the action, the reward and whether it terminated the episode; the frame that it led to
is that of the next step. A truncated episode ends with a step whose frame alone counts. Where the
next step is of another episode, its `episode_step` shows it: no stack and no return reaches across.

The arrays are PyTorch's, on the learner's device, and what is sampled is chosen and gathered there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import torch

from goalreel.errors import GoalreelError
from goalreel.training.pixels.collector import step_fields
from goalreel.training.pixels.settings import RING

_TRIES = 100
_CONTAINER = Path("/sys/fs/cgroup/memory.max")  # a container that takes more is killed silently


@dataclass(frozen=True)
class ReplayBatch:
    """A sample of steps, each with what followed it for up to n steps."""

    stacks: torch.Tensor  # (n, stack, H, W) uint8, the oldest frame first
    actions: torch.Tensor  # (n,) int64
    returns: torch.Tensor  # (n,) float32, the discounted sum of the rewards
    next_stacks: torch.Tensor  # as stacks, of the step after these; any where it terminated
    discounts: torch.Tensor  # (n,) float32, of the value of next_stacks; 0 where it terminated


class FrameReplay:
    """The latest steps of all environments.

    Attributes:
        size: steps of an environment.
        count: (num_envs,) int64, how many steps each environment has ever held.
        device: PyTorch's, where the steps are.
    """

    def __init__(
        self,
        num_envs: int,
        size: int,
        shape: tuple[int, int],
        stack: int,
        n_step: int = 1,
        gamma: float = 0.99,
        device: torch.device | str = "cpu",
    ):
        """Reserve room for `size` steps, with frames of a shape (H, W), of each environment.

        Raises GoalreelError if the device has less memory than that takes, before any is touched,
        and if the environments' rings are too short to sample from.
        """
        fields = {name: spec for name, spec in step_fields(shape).items() if name != "env"}
        self.device = torch.device(device)
        _check_memory(sum(np.dtype((d, s)).itemsize for d, s in fields.values()), num_envs * size,
                      self.device)  # fmt: skip
        if size <= (least := stack + n_step + 2 * RING):
            raise GoalreelError(
                f"a replay buffer of {num_envs * size:,} steps has {size:,} for each of {num_envs} "
                f"environments; it needs more than {least:,} for each"
            )
        self.size, self._stack, self._n_step = size, stack, n_step
        self.count = np.zeros(num_envs, np.int64)
        self._steps = {
            name: torch.zeros(
                (num_envs * size, *shape),
                dtype=torch.from_numpy(np.zeros(0, dtype)).dtype,
                device=self.device,
            )
            for name, (dtype, shape) in fields.items()
        }
        self._ahead = torch.arange(n_step + 1, device=self.device)
        self._back = torch.arange(stack - 1, -1, -1, device=self.device)
        self._powers = gamma ** torch.arange(n_step + 1.0, device=self.device)

    def __len__(self) -> int:
        """Return the number of steps that are held."""
        return int(np.minimum(self.count, self.size).sum())

    def state(self) -> dict[str, torch.Tensor]:
        """Return all that `load` needs, without copies on a CPU."""
        return {"count": torch.from_numpy(self.count), **self._steps}

    def load(self, state: Mapping[str, torch.Tensor]) -> None:
        """Copy the state of a buffer of this size; maps of files will do.

        What is appended next begins with a reset, so that nothing is stacked across the gap.
        Raises GoalreelError for the state of another buffer.
        """
        for name, own in self.state().items():
            if name not in state or state[name].shape != own.shape:
                raise GoalreelError(f"the replay buffer's {name} is not of {tuple(own.shape)}")
            own.copy_(state[name])

    def append(self, rows: Mapping[str, np.ndarray], first_env: int = 0) -> None:
        """Add steps, in order of each environment; env 0 of the rows is environment `first_env`."""
        envs = rows["env"] + first_env
        order = np.argsort(envs, kind="stable")
        counts = np.bincount(envs, minlength=len(self.count))
        numbers = np.empty(len(envs), np.int64)  # of each row among those of its environment
        numbers[order] = np.arange(len(envs)) - np.repeat(np.cumsum(counts) - counts, counts)
        places = self._sent(envs * self.size + (self.count[envs] + numbers) % self.size)
        for name, field in self._steps.items():
            field[places] = self._sent(rows[name])
        self.count += counts

    def sample(self, count: int, rng: torch.Generator) -> ReplayBatch | None:
        """Return `count` steps, each as likely as another; None while hardly any can be chosen.

        A stack that reaches back to a reset repeats its first frame, as Gymnasium's
        FrameStackObservation does. The newest n steps of an environment are not sampled yet.

        rng: of the buffer's device.
        """
        batches, missing = [], count
        for _ in range(_TRIES):
            batch = self._draw(missing, rng)
            if batch is not None:
                batches.append(batch)
                missing -= len(batch.actions)
            if missing == 0:
                return _joined(batches)
        return None

    def _draw(self, count: int, rng: torch.Generator) -> ReplayBatch | None:
        """Return up to `count` steps, or None if there are none."""
        oldest = np.maximum(self.count - self.size, 0)
        held = np.maximum(self.count - self._n_step - oldest, 0)
        if not held.sum():
            return None
        ends = np.cumsum(held)
        # Twice as many as are asked for, since some may not be sampled.
        picked = torch.randint(int(ends[-1]), (2 * count,), generator=rng, device=self.device)
        envs = torch.searchsorted(self._sent(ends), picked, right=True)
        oldest = self._sent(oldest)[envs]
        steps = oldest + picked - self._sent(ends - held)[envs]
        base = envs * self.size
        chain = base[:, None] + (steps[:, None] + self._ahead) % self.size
        episode_steps = self._steps["episode_step"][chain]
        # Up to `last`, 0 to n, each step follows the one before it in its episode.
        last = (episode_steps == episode_steps[:, :1] + self._ahead).cumprod(1).sum(1) - 1
        terminated = self._steps["terminated"][chain].gather(1, last[:, None])[:, 0] > 0
        terminated &= last < self._n_step  # else its reward is not among the n
        length = last + terminated
        good = (length > 0) & (steps - episode_steps[:, 0].clamp(max=self._stack - 1) >= oldest)
        (kept,) = good.nonzero(as_tuple=True)
        kept = kept[:count]
        if not len(kept):
            return None
        base, steps, chain, length = base[kept], steps[kept], chain[kept], length[kept]
        rewards = self._steps["reward"][chain] * self._powers * (self._ahead < length[:, None])
        return ReplayBatch(
            stacks=self._stacks(base, steps),
            actions=self._steps["action"][chain[:, 0]].long(),
            returns=rewards.sum(1),
            next_stacks=self._stacks(base, steps + torch.where(terminated[kept], 0, length)),
            discounts=torch.where(terminated[kept], 0.0, self._powers[length]),
        )

    def _stacks(self, base: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        episode_steps = self._steps["episode_step"][base + steps % self.size]
        back = torch.minimum(self._back, episode_steps[:, None])
        places = base[:, None] + (steps[:, None] - back) % self.size
        frames = self._steps["frame"]
        return frames.index_select(0, places.flatten()).view(*places.shape, *frames.shape[1:])

    def _sent(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).to(self.device, non_blocking=True)


def _joined(batches: list[ReplayBatch]) -> ReplayBatch:
    if len(batches) == 1:
        return batches[0]
    return ReplayBatch(*map(torch.cat, zip(*(vars(b).values() for b in batches), strict=True)))


def _check_memory(step: int, steps: int, device: torch.device) -> None:
    """Raise GoalreelError if so many steps, of so many bytes, do not fit into a device's memory."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
    else:
        free = psutil.virtual_memory().available
        if _CONTAINER.exists() and (limit := _CONTAINER.read_text().strip()) != "max":
            free = min(free, int(limit))
    if step * steps > free:
        raise GoalreelError(
            f"pixels.buffer: {steps:,} steps take {step * steps / 2**30:,.1f} GiB; this machine, "
            f"its container or its GPU has {free / 2**30:,.1f} GiB free. "
            f"Take at most {free // step:,}."
        )
