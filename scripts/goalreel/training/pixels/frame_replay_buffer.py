"""The replay buffer of frames: each is held once, and stacked when it is sampled.

Every environment has a lane of its own, a ring of its steps in order. A step holds the frame of its
observation, the action, the reward and whether it terminated the episode; the frame that it led to
is that of the next step. A truncated episode ends with a step whose frame alone counts. Where the
next step is missing, since an episode ended there or a full ring dropped it, the `age` of the one
that follows shows it: such a step is not sampled, unless it terminated.

One thread appends while another samples, without a lock: a lane's count is raised once its steps
are written; sampling keeps away from the steps that are overwritten next, and checks afterwards
whether the writer has come as far as that.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.training.pixels.available_memory import available_memory
from goalreel.training.shared_memory.blocks import Fields

_TRIES = 100


def step_fields(shape: tuple[int, int]) -> Fields:
    """Return the fields of a step, as rings and replay hold them, for frames of a shape (H, W)."""
    return {
        "frame": ("u1", shape),
        "env": ("<i4", ()),  # the environment's number
        "action": ("<i2", ()),
        "reward": ("<f4", ()),
        "age": ("<i4", ()),  # steps since its reset, or since steps were dropped
        "terminated": ("u1", ()),
    }


@dataclass(frozen=True)
class Batch:
    """A sample of steps."""

    stacks: np.ndarray  # (n, stack, H, W) uint8, the oldest frame first
    actions: np.ndarray  # (n,) int64
    rewards: np.ndarray  # (n,) float32
    next_stacks: np.ndarray  # as stacks; where an episode terminated, any frames
    terminated: np.ndarray  # (n,) bool


class FrameReplay:
    """The latest steps of all lanes.

    Attributes:
        size: steps of a lane.
        stack: frames of an observation.
        count: (lanes,) int64, how many steps each lane has ever held.
    """

    def __init__(self, lanes: int, size: int, shape: tuple[int, int], stack: int, margin: int):
        """Reserve room for `size` steps, with frames of a shape (H, W), of each lane.

        A lane's steps are written `margin` at a time, and as many may be added while a sample is
        taken. Raises GoalreelError if the machine has less memory than that takes, before any is
        touched, and if the lanes are too short to sample from.
        """
        fields = {name: spec for name, spec in step_fields(shape).items() if name != "env"}
        _check_memory(fields, lanes * size)
        if size <= (least := 2 * margin + stack + 1):
            raise GoalreelError(
                f"a replay buffer of {lanes * size:,} steps has {size:,} for each of {lanes} "
                f"environments; it needs more than {least:,} for each"
            )
        self.size, self.stack, self._margin = size, stack, margin
        self.count = np.zeros(lanes, np.int64)
        self._steps = {
            name: np.zeros((lanes, size, *shape), dtype) for name, (dtype, shape) in fields.items()
        }

    def __len__(self) -> int:
        """Return the number of steps that are held."""
        return int(np.minimum(self.count, self.size).sum())

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays by name, without copies; nothing may be appended meanwhile.

        `count`, (lanes,) int64, and the fields of `step_fields` but env, (lanes, size, ...).
        """
        return {"count": self.count, **self._steps}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Copy what `arrays` of a buffer of this size gave, lane by lane; maps of files will do.

        What is appended next begins with a reset, so that nothing is stacked across the gap.
        Raises GoalreelError for arrays of another buffer.
        """
        for name, array in self.arrays().items():
            if name not in arrays or arrays[name].shape != array.shape:
                raise GoalreelError(f"the replay buffer's {name} is not of the shape {array.shape}")
            for lane in range(len(self.count)):
                array[lane] = arrays[name][lane]

    def append(self, rows: Mapping[str, np.ndarray], first_lane: int = 0) -> None:
        """Add steps, in order of each environment; env 0 of the rows is lane `first_lane`."""
        lanes = rows["env"] + first_lane
        for lane in np.unique(lanes):
            (own,) = np.nonzero(lanes == lane)
            for start in range(0, len(own), self._margin):
                self._append(int(lane), rows, own[start : start + self._margin])

    def _append(self, lane: int, rows: Mapping[str, np.ndarray], own: np.ndarray) -> None:
        places = (self.count[lane] + np.arange(len(own))) % self.size
        for name, field in self._steps.items():
            field[lane, places] = rows[name][own]
        self.count[lane] += len(own)

    def sample(self, count: int, rng: np.random.Generator) -> Batch | None:
        """Return `count` steps, each as likely as another; None while hardly any can be chosen.

        A stack that reaches back to a reset repeats its first frame, as Gymnasium's
        FrameStackObservation does.
        """
        batches, missing = [], count
        for _ in range(_TRIES):
            lanes, steps = self._draw(2 * missing, rng)
            batch = self._take(lanes[:missing], steps[:missing])
            if batch is not None:
                batches.append(batch)
                missing -= len(batch.actions)
            if missing == 0:
                return _joined(batches)
        return None

    def _draw(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return the lanes and numbers of steps that may be sampled, up to `count` of them."""
        counts = self.count.copy()
        oldest = np.maximum(counts - self.size + 2 * self._margin, 0)
        held = np.maximum(counts - 1 - oldest, 0)  # the last step's successor is yet to come
        total = int(held.sum())
        if not total:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        ends = np.cumsum(held)
        picked = rng.integers(total, size=count)
        lanes = np.searchsorted(ends, picked, side="right")
        steps = oldest[lanes] + picked - (ends - held)[lanes]
        places, ages = steps % self.size, self._steps["age"]
        age, next_age = ages[lanes, places], ages[lanes, (steps + 1) % self.size]
        good = (self._steps["terminated"][lanes, places] > 0) | (next_age == age + 1)
        good &= steps - np.minimum(age, self.stack - 1) >= oldest[lanes]
        return lanes[good], steps[good]

    def _take(self, lanes: np.ndarray, steps: np.ndarray) -> Batch | None:
        """Return the steps as a batch, or None if some were overwritten meanwhile."""
        places = steps % self.size
        batch = Batch(
            stacks=self._stacks(lanes, steps),
            actions=self._steps["action"][lanes, places].astype(np.int64),
            rewards=self._steps["reward"][lanes, places],
            next_stacks=self._stacks(lanes, steps + 1),
            terminated=self._steps["terminated"][lanes, places].astype(bool),
        )
        # The writer may be at work on `margin` steps beyond its count.
        overwritten = self.count[lanes] + self._margin - self.size
        safe = np.maximum(steps - self.stack + 1, 0) >= overwritten
        return batch if safe.all() else None

    def _stacks(self, lanes: np.ndarray, steps: np.ndarray) -> np.ndarray:
        ages = self._steps["age"][lanes, steps % self.size]
        back = np.minimum(np.arange(self.stack)[::-1], ages[:, None])
        return self._steps["frame"][lanes[:, None], (steps[:, None] - back) % self.size]


def _joined(batches: list[Batch]) -> Batch:
    if len(batches) == 1:
        return batches[0]
    return Batch(*map(np.concatenate, zip(*(vars(b).values() for b in batches), strict=True)))


def _check_memory(fields: Fields, steps: int) -> None:
    size = sum(np.dtype(d).itemsize * int(np.prod(s)) for d, s in fields.values()) * steps
    free = available_memory()
    if free is not None and size > free:
        raise GoalreelError(
            f"a replay buffer of {steps:,} steps takes {size / 2**30:,.1f} GiB; this machine, or "
            f"its container, has {free / 2**30:,.1f} GiB free, which is enough for "
            f"{int(steps * free / size):,}"
        )
