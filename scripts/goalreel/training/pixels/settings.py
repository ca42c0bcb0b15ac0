"""The settings of a training from pixels; no PyTorch is needed to read them.

The layers are those of V. Mnih et al., "Human-level control through deep reinforcement learning"
(2015), table "Network architecture".
"""

import sys
from dataclasses import dataclass

from goalreel.policies.pixel_network import NETWORKS, SIDE

CONVOLUTIONS, HIDDEN = NETWORKS["nature"]
BATCH = 1000  # steps that are moved into the buffer at a time, if not more
_EXPLORATION, _LAST_EPSILON = 0.2, 0.05  # share of the frames over which epsilon falls from 1
_RING = 4096  # steps of a collector's ring, 29 MB of frames


@dataclass(frozen=True)
class LearnerSettings:
    """How to learn."""

    batch: int = 512
    accumulation: int = 4  # batches of an update, which follows their mean gradient
    autocast: bool = True  # bfloat16 on a CPU that computes in it; float16, scaled, on CUDA
    compile: bool = False  # torch.compile; on a CPU an update was measured to take as long without
    gradient_clip: float | None = (
        None  # the most that the gradient's norm may be, None for no limit
    )
    learning_rate: float = 1e-4  # of Adam; the default is RL Baselines3 Zoo's for Atari
    discount: float = 0.99
    double: bool = True  # Double DQN (H. van Hasselt et al., 2016)
    device: str | None = None  # of PyTorch, None for CUDA where it is
    stack: int = 4  # frames of an observation
    normalise: bool = True  # BatchNorm after each convolution; without it they have biases


@dataclass(frozen=True)
class PipelineSettings:
    """How to train: the options of the configuration's section `pixels` (config.schema.yaml)."""

    game: str
    frame_skip: int
    warp: str
    collectors: int
    environments: int  # of each collector
    frames: int  # `frame_skip` for each action, those after an episode's end too
    buffer: int  # steps of the replay buffer
    backpressure: str  # block or drop
    python: str | None  # the collectors' interpreter, None for this one
    seed: int
    replay_ratio: float | None  # samples learned for each step taken in; None: no side waits
    batch: int
    accumulation: int
    learning_rate: float
    discount: float  # of what follows an action, however many frames it lasts
    gradient_clip: float | None
    publish_every: int  # updates
    target_every: int  # updates

    @property
    def interpreter(self) -> str:
        """The collectors' Python."""
        return self.python or sys.executable

    @property
    def lanes(self) -> int:
        """All environments."""
        return self.collectors * self.environments

    @property
    def samples(self) -> int:
        """The samples of an update."""
        return self.batch * self.accumulation

    @property
    def start(self) -> int:
        """The steps that are in the buffer before the first update."""
        return self.buffer // 10

    @property
    def stride(self) -> int:
        """The steps by which the limit of the replay feeder is raised.

        A small part of the buffer at most, since learning is as far behind.
        """
        return max(min(BATCH, self.buffer // 50), 1)

    @property
    def ring(self) -> int:
        """The steps that a collector's ring holds: whole steps of all its environments."""
        return max(_RING // self.environments, 4) * self.environments

    def learner(self, **others) -> LearnerSettings:
        """Return how to learn; others: fields that the configuration does not set."""
        names = ("batch", "accumulation", "learning_rate", "discount", "gradient_clip")
        return LearnerSettings(**{name: getattr(self, name) for name in names}, **others)

    def epsilon(self, frames: int) -> float:
        """Return the share of random actions after so many frames."""
        progress = min(frames / (_EXPLORATION * self.frames), 1.0)
        return 1.0 + progress * (_LAST_EPSILON - 1.0)


def side_after_convolutions(side: int = SIDE) -> int:
    """Return the side of the last convolution's output."""
    for _, kernel, stride in CONVOLUTIONS:
        side = (side - kernel) // stride + 1
    return side
