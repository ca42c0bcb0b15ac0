"""The replay buffer of frames: each is held once, and stacked when it is sampled.

Every environment has a ring of its own, its steps in order. A step holds the frame of its
observation, the action, the reward and whether it terminated the episode; the frame that it led to
is that of the next step. A truncated episode ends with a step whose frame alone counts. Where the
next step is missing, since an episode ended there or a full ring dropped it, the `episode_step` of
the one that follows shows it: no stack and no return reaches across.

The arrays are PyTorch's, on the learner's device where they fit, and what is sampled is chosen and
gathered there. One thread appends while another samples, without a lock: an environment's count is
raised once its steps are written; sampling keeps away from those that are overwritten next, and
checks afterwards whether the writer has come as far as that.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from goalreel.errors import GoalreelError
from goalreel.training.pixels.available_memory import available_memory
from goalreel.training.pixels.collector import step_fields
from goalreel.training.shared_memory.blocks import Fields

_TRIES = 100


@dataclass(frozen=True)
class Batch:
    """A sample of steps, each with what followed it for up to n steps."""

    stacks: torch.Tensor  # (n, stack, H, W) uint8, the oldest frame first
    actions: torch.Tensor  # (n,) int64
    returns: torch.Tensor  # (n,) float32, the discounted sum of the rewards
    next_stacks: torch.Tensor  # as stacks, of the step after these; any where it terminated
    discounts: torch.Tensor  # (n,) float32, of the value of next_stacks; 0 where it terminated


class FrameReplay:
    """The latest steps of all environments.

    Attributes:
        size: steps of a environment.
        stack: frames of an observation.
        count: (num_envs,) int64, how many steps each environment has ever held.
        device: PyTorch's, where the steps are.
    """

    def __init__(
        self,
        num_envs: int,
        size: int,
        shape: tuple[int, int],
        stack: int,
        margin: int,
        n_step: int = 1,
        discount: float = 0.99,
        device: torch.device | str = "cpu",
    ):
        """Reserve room for `size` steps, with frames of a shape (H, W), of each environment.

        An environment's steps are written `margin` at a time, and as many may be added while a
        sample is taken. Raises GoalreelError if the machine has less memory than that takes, before
        any is touched, and if the environments are too short to sample from.
        """
        fields = {name: spec for name, spec in step_fields(shape).items() if name != "env"}
        self.device = _device(fields, num_envs * size, torch.device(device))
        if size <= (least := 2 * margin + stack + n_step):
            raise GoalreelError(
                f"a replay buffer of {num_envs * size:,} steps has {size:,} for each of {num_envs} "
                f"environments; it needs more than {least:,} for each"
            )
        self.size, self.stack, self._margin, self._n_step = size, stack, margin, n_step
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
        self._powers = discount ** torch.arange(n_step + 1.0, device=self.device)

    def __len__(self) -> int:
        """Return the number of steps that are held."""
        return int(np.minimum(self.count, self.size).sum())

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays by name, without copies on a CPU; nothing may be appended meanwhile.

        `count`, (num_envs,) int64, and the fields of `step_fields` but env, (num_envs * size, ...).
        """
        return {"count": self.count, **{n: step.cpu().numpy() for n, step in self._steps.items()}}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Copy what `arrays` of a buffer of this size gave; maps of files will do.

        What is appended next begins with a reset, so that nothing is stacked across the gap.
        Raises GoalreelError for arrays of another buffer.
        """
        for name, own in {"count": torch.from_numpy(self.count), **self._steps}.items():
            if name not in arrays or arrays[name].shape != tuple(own.shape):
                raise GoalreelError(f"the replay buffer's {name} is not of {tuple(own.shape)}")
            part = len(own) // len(self.count)
            for start in range(0, len(own), part):
                piece = np.array(arrays[name][start : start + part])
                own[start : start + part] = torch.from_numpy(piece)

    def append(self, rows: Mapping[str, np.ndarray], first_env: int = 0) -> None:
        """Add steps, in order of each environment; env 0 of the rows is environment `first_env`."""
        envs = rows["env"] + first_env
        for index in np.unique(envs):
            (own,) = np.nonzero(envs == index)
            for start in range(0, len(own), self._margin):
                self._append(int(index), rows, own[start : start + self._margin])

    def _append(self, index: int, rows: Mapping[str, np.ndarray], own: np.ndarray) -> None:
        places = index * self.size + (self.count[index] + np.arange(len(own))) % self.size
        places = torch.from_numpy(places).to(self.device)
        for name, field in self._steps.items():
            field[places] = torch.from_numpy(rows[name][own]).to(self.device)
        self.count[index] += len(own)

    def sample(self, count: int, rng: torch.Generator) -> Batch | None:
        """Return `count` steps, each as likely as another; None while hardly any can be chosen.

        A stack that reaches back to a reset repeats its first frame, as Gymnasium's
        FrameStackObservation does. The newest n steps of a environment are not sampled yet.

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

    def _draw(self, count: int, rng: torch.Generator) -> Batch | None:
        """Return up to `count` steps, or None if there are none, or some were overwritten."""
        counts = self.count.copy()
        oldest = np.maximum(counts - self.size + 2 * self._margin, 0)
        held = np.maximum(counts - self._n_step - oldest, 0)
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
        good = (length > 0) & (steps - episode_steps[:, 0].clamp(max=self.stack - 1) >= oldest)
        (kept,) = good.nonzero(as_tuple=True)
        kept = kept[:count]
        if not len(kept):
            return None
        base, steps, chain, length = base[kept], steps[kept], chain[kept], length[kept]
        rewards = self._steps["reward"][chain] * self._powers * (self._ahead < length[:, None])
        batch = Batch(
            stacks=self._stacks(base, steps),
            actions=self._steps["action"][chain[:, 0]].long(),
            returns=rewards.sum(1),
            next_stacks=self._stacks(base, steps + torch.where(terminated[kept], 0, length)),
            discounts=torch.where(terminated[kept], 0.0, self._powers[length]),
        )
        # The writer may be at work on `margin` steps beyond its count.
        overwritten = self._sent(self.count + self._margin - self.size)[envs[kept]]
        safe = (steps - self.stack + 1).clamp(min=0) >= overwritten
        return batch if bool(safe.all()) else None

    def _stacks(self, base: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        episode_steps = self._steps["episode_step"][base + steps % self.size]
        back = torch.minimum(self._back, episode_steps[:, None])
        places = base[:, None] + (steps[:, None] - back) % self.size
        frames = self._steps["frame"]
        return frames.index_select(0, places.flatten()).view(*places.shape, *frames.shape[1:])

    def _sent(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).to(self.device, non_blocking=True)


def _joined(batches: list[Batch]) -> Batch:
    if len(batches) == 1:
        return batches[0]
    return Batch(*map(torch.cat, zip(*(vars(b).values() for b in batches), strict=True)))


def _device(fields: Fields, steps: int, device: torch.device) -> torch.device:
    """Return where so many steps fit: the device, else the CPU. Raises GoalreelError if nowhere."""
    size = sum(np.dtype(d).itemsize * int(np.prod(s)) for d, s in fields.values()) * steps
    if device.type == "cuda" and size < torch.cuda.mem_get_info(device)[0] // 2:
        return device
    free = available_memory()
    if size > free:
        raise GoalreelError(
            f"a replay buffer of {steps:,} steps takes {size / 2**30:,.1f} GiB; this machine, or "
            f"its container, has {free / 2**30:,.1f} GiB free, which is enough for "
            f"{int(steps * free / size):,}"
        )
    return torch.device("cpu")
