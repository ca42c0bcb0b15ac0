"""A replay buffer that stores each frame once, and stacks frames when it samples.

All environments add a row at once: the observation (of a stack its newest frame), the action and
its outcome. The next observation is in the next row. `episode_step` shows where an episode starts,
so that no stack or n-step return spans two episodes. A truncated episode's last observation is not
stored: a return that reaches its last step stops before it, and takes the value of the state there.

The arrays are PyTorch tensors on the learner's device, which also samples.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import torch

from goalreel.errors import OptionError

_CONTAINER = Path("/sys/fs/cgroup/memory.max")  # the memory limit of a container


@dataclass(frozen=True)
class ReplayBatch:
    """A batch of n-step transitions."""

    obs: torch.Tensor  # (n, *shape)
    actions: torch.Tensor  # (n,) int64
    returns: torch.Tensor  # (n,) float32, the discounted sum of the rewards
    next_obs: torch.Tensor  # after the last of these rewards, arbitrary after termination
    discounts: torch.Tensor  # (n,) float32, of the value of next_obs; 0 after termination


class ReplayBuffer:
    """A replay buffer of the latest steps of all environments."""

    def __init__(
        self,
        num_envs: int,
        buffer_size: int,
        shape: tuple[int, ...],
        n_steps: int = 1,
        gamma: float = 0.99,
        device: torch.device | str = "cpu",
    ):
        """Allocate `buffer_size` steps for observations of a shape: (stack, H, W), or (n,)."""
        # Raises OptionError if the device lacks memory, or if the rows are too few to sample from.
        self.size, self.num_envs = buffer_size // num_envs, num_envs
        self._n_steps, self._device = n_steps, torch.device(device)
        self._stack = shape[0] if len(shape) == 3 else 1
        frame, dtype = (shape[1:], torch.uint8) if len(shape) == 3 else (shape, torch.float32)
        _check_memory(int(np.prod(frame)) * dtype.itemsize + 16, buffer_size, self._device)
        if self.size < (least := self._stack + n_steps + 2):
            problem = f"{buffer_size:,} steps are {self.size:,} per environment"
            fix = f"Use at least {num_envs * least:,}."
            raise OptionError("train.buffer_size", f"{problem}. {fix}")
        kinds = {"actions": torch.int16, "rewards": torch.float32, "terminated": torch.bool}
        kinds |= {"truncated": torch.bool, "episode_step": torch.int32}
        rows = (self.size, num_envs)
        self._rows = {n: torch.zeros(rows, dtype=k, device=device) for n, k in kinds.items()}
        self._rows["frames"] = torch.zeros((*rows, *frame), dtype=dtype, device=device)
        self.count = 0  # of rows that were ever added
        self._ahead = torch.arange(n_steps, device=device)
        self._back = torch.arange(self._stack - 1, -1, -1, device=device)
        self._powers = gamma ** torch.arange(n_steps + 1.0, device=device)

    def state(self) -> dict:
        """Return the state for `load`, without copying the arrays on a CPU."""
        return {"count": self.count, **self._rows}

    def load(self, state: Mapping) -> None:
        """Copy a state, which may be memory-mapped, into this buffer."""
        # Episodes that ran on count as truncated, since no later row continues them.
        self.count = state["count"]
        for name, own in self._rows.items():
            own.copy_(state[name])
        self._rows["truncated"][(self.count - 1) % self.size] = True

    def add(self, obs: np.ndarray, **columns: np.ndarray) -> None:
        """Add a row: observations (num_envs, *shape), and the other columns (num_envs,) each."""
        place = self.count % self.size
        frames = obs[:, -1] if obs.ndim == 4 else obs
        for name, column in {"frames": frames, **columns}.items():
            self._rows[name][place] = torch.from_numpy(column).to(self._device)
        self.count += 1

    def sample(self, count: int, rng: torch.Generator) -> ReplayBatch:
        """Return `count` uniformly random steps whose n-step returns are complete."""
        # As in FrameStackObservation, a stack at an episode's start repeats the first frame.
        # rng: a generator on the device of the buffer
        rows, envs = [], []
        while sum(map(len, rows)) < count:
            row, env = self._draw(count, rng)
            rows, envs = [*rows, row], [*envs, env]
        row, env = torch.cat(rows)[:count], torch.cat(envs)[:count]
        chain = (row[:, None] + self._ahead) % self.size, env[:, None]
        terminated = self._rows["terminated"][chain]
        cut = self._rows["truncated"][chain] & ~terminated
        # Whether the episode still runs before a step, and whether the step's reward counts.
        runs = (~(terminated | cut)).cumprod(1).roll(1, 1)
        runs[:, 0] = 1
        counts = runs * ~cut
        length, over = counts.sum(1), (runs * terminated).any(1)
        rewards = self._rows["rewards"][chain] * self._powers[:-1] * counts
        return ReplayBatch(
            obs=self._observations(row, env),
            actions=self._rows["actions"][row % self.size, env].long(),
            returns=rewards.sum(1),
            next_obs=self._observations(torch.where(over, row, row + length), env),
            discounts=torch.where(over, 0.0, self._powers[length]),
        )

    def _draw(self, count: int, rng: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """Return rows and environments of at most `count` steps to learn from."""
        low = max(self.count - self.size + self._stack - 1, 0)
        high = self.count - self._n_steps
        row = torch.randint(low, high, (count,), generator=rng, device=self._device)
        env = torch.randint(self.num_envs, (count,), generator=rng, device=self._device)
        place = row % self.size, env
        good = self._rows["terminated"][place] | ~self._rows["truncated"][place]
        return row[good], env[good]

    def _observations(self, row: torch.Tensor, env: torch.Tensor) -> torch.Tensor:
        frames = self._rows["frames"]
        if frames.ndim == 3:  # states
            return frames[row % self.size, env]
        age = self._rows["episode_step"][row % self.size, env]
        places = (row[:, None] - torch.minimum(self._back, age[:, None])) % self.size
        index = (places * self.num_envs + env[:, None]).flatten()
        flat = frames.flatten(0, 1).index_select(0, index)
        return flat.view(*places.shape, *frames.shape[2:])


def _check_memory(step: int, steps: int, device: torch.device) -> None:
    """Raise OptionError if `steps` of `step` bytes do not fit into the memory of a device."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
    else:
        free = psutil.virtual_memory().available
        if _CONTAINER.exists() and (limit := _CONTAINER.read_text().strip()) != "max":
            free = min(free, int(limit))
    if step * steps > free:
        problem = f"{steps:,} steps need {step * steps / 2**30:,.1f} GiB of memory"
        left = f"{free / 2**30:,.1f} GiB is free"
        fix = f"Use at most {free // step:,}."
        raise OptionError("train.buffer_size", f"{problem}, and {left}. {fix}")
