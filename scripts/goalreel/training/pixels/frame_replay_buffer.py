"""A replay buffer that stores each frame once and stacks frames when it samples.

Every environment has its own ring of consecutive steps. A step contains the frame of its
observation, the action, the reward and whether it terminated the episode. The next observation is
in the next step. A truncated episode ends with a row that is no step and contains only a frame.
`episode_step` shows where an episode starts, so that no stack or n-step return spans two episodes.

The arrays are PyTorch tensors on the learner's device, which also samples.
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
_CONTAINER = Path("/sys/fs/cgroup/memory.max")  # the memory limit of a container


@dataclass(frozen=True)
class ReplayBatch:
    """A batch of n-step transitions."""

    stacks: torch.Tensor  # (n, stack, H, W) uint8, the oldest frame first
    actions: torch.Tensor  # (n,) int64
    returns: torch.Tensor  # (n,) float32, the discounted sum of the rewards
    next_stacks: torch.Tensor  # as stacks, n steps later, arbitrary after termination
    discounts: torch.Tensor  # (n,) float32, of the value of next_stacks; 0 after termination


class FrameReplay:
    """A replay buffer of the latest steps of all environments."""

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
        """Allocate `size` steps per environment, with frames of a shape (H, W).

        Raises GoalreelError if the memory of the device does not suffice, or if the rings are too
        short to sample from.
        """
        fields = {name: spec for name, spec in step_fields(shape).items() if name != "env"}
        self.device = torch.device(device)
        _check_memory(sum(np.dtype((d, s)).itemsize for d, s in fields.values()), num_envs * size,
                      self.device)  # fmt: skip
        if size <= (least := stack + n_step + 2 * RING):
            problem = f"{num_envs * size:,} steps are {size:,} per environment"
            fix = f"Use at least {num_envs * (least + 1):,}."
            raise GoalreelError(f"pixels.buffer_size: {problem}. {fix}")
        self.size, self._stack, self._n_step = size, stack, n_step
        self.count = np.zeros(num_envs, np.int64)  # of steps that each environment ever added
        self._steps = {}
        for name, (dtype, shape) in fields.items():
            rows, kind = (num_envs * size, *shape), getattr(torch, np.dtype(dtype).name)
            self._steps[name] = torch.zeros(rows, dtype=kind, device=self.device)
        self._ahead = torch.arange(n_step + 1, device=self.device)
        self._back = torch.arange(stack - 1, -1, -1, device=self.device)
        self._powers = gamma ** torch.arange(n_step + 1.0, device=self.device)

    def __len__(self) -> int:
        return int(np.minimum(self.count, self.size).sum())

    def state(self) -> dict[str, torch.Tensor]:
        """Return the state for `load`, without copying the arrays on a CPU."""
        return {"count": torch.from_numpy(self.count), **self._steps}

    def load(self, state: Mapping[str, torch.Tensor]) -> None:
        """Copy a state, which may be memory-mapped, into this buffer.

        The rows appended next start with a reset, so that no stack spans the gap. Raises
        GoalreelError if the state has other shapes.
        """
        for name, own in self.state().items():
            if name not in state or state[name].shape != own.shape:
                shape = tuple(own.shape)
                raise GoalreelError(f"{name} in the replay buffer has not the shape {shape}")
            own.copy_(state[name])

    def append(self, rows: Mapping[str, np.ndarray], first_env: int = 0) -> None:
        """Add steps in the order of each environment. `env` 0 is environment `first_env`."""
        envs = rows["env"] + first_env
        order = np.argsort(envs, kind="stable")
        counts = np.bincount(envs, minlength=len(self.count))
        numbers = np.empty(len(envs), np.int64)  # index among the new rows of its environment
        numbers[order] = np.arange(len(envs)) - np.repeat(np.cumsum(counts) - counts, counts)
        places = self._sent(envs * self.size + (self.count[envs] + numbers) % self.size)
        for name, field in self._steps.items():
            field[places] = self._sent(rows[name])
        self.count += counts

    def sample(self, count: int, rng: torch.Generator) -> ReplayBatch | None:
        """Return `count` uniformly random steps, None if too few steps are available.

        A stack at the start of an episode repeats the first frame, as Gymnasium's
        FrameStackObservation does. The newest n steps of an environment are not sampled yet.

        rng: a generator on the device of the buffer
        """
        batches, missing = [], count
        for _ in range(_TRIES):
            if batch := self._draw(missing, rng):
                batches.append(batch)
                missing -= len(batch.actions)
            if missing == 0:
                columns = zip(*(vars(batch).values() for batch in batches), strict=True)
                return batches[0] if len(batches) == 1 else ReplayBatch(*map(torch.cat, columns))
        return None

    def _draw(self, count: int, rng: torch.Generator) -> ReplayBatch | None:
        """Return at most `count` steps, None if there are none to sample."""
        oldest = np.maximum(self.count - self.size, 0)
        held = np.maximum(self.count - self._n_step - oldest, 0)
        if not held.sum():
            return None
        ends = np.cumsum(held)
        # Twice as many, because some are not valid.
        picked = torch.randint(int(ends[-1]), (2 * count,), generator=rng, device=self.device)
        envs = torch.searchsorted(self._sent(ends), picked, right=True)
        oldest = self._sent(oldest)[envs]
        steps = oldest + picked - self._sent(ends - held)[envs]
        base = envs * self.size
        chain = base[:, None] + (steps[:, None] + self._ahead) % self.size
        episode_steps = self._steps["episode_step"][chain]
        # The steps up to `last`, 0 to n, are of the same episode.
        last = (episode_steps == episode_steps[:, :1] + self._ahead).cumprod(1).sum(1) - 1
        terminated = self._steps["terminated"][chain].gather(1, last[:, None])[:, 0] > 0
        terminated &= last < self._n_step  # else its reward is not one of the n
        length = last + terminated
        good = (length > 0) & (steps - episode_steps[:, 0].clamp(max=self._stack - 1) >= oldest)
        (kept,) = good.nonzero(as_tuple=True)
        kept = kept[:count]
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


def _check_memory(step: int, steps: int, device: torch.device) -> None:
    """Raise GoalreelError if `steps` of `step` bytes do not fit into the memory of a device."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
    else:
        free = psutil.virtual_memory().available
        if _CONTAINER.exists() and (limit := _CONTAINER.read_text().strip()) != "max":
            free = min(free, int(limit))
    if step * steps > free:
        raise GoalreelError(
            f"pixels.buffer_size: {steps:,} steps need {step * steps / 2**30:,.1f} GiB of memory, "
            f"and {free / 2**30:,.1f} GiB is free. Use at most {free // step:,}."
        )
