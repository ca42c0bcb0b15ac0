"""The settings of a training from pixels; no PyTorch is needed to read them."""

import sys
from dataclasses import dataclass

RING = 16  # steps of each environment that a collector may be ahead of the trainer


@dataclass(frozen=True)
class PipelineSettings:
    """How to train: the options of the configuration's section `pixels`, and how to compute."""

    game: str
    frame_skip: int
    network: str  # its name in pixel_network.NETWORKS
    dueling: bool  # separate values of states and advantages of actions
    double: bool  # Double DQN (H. van Hasselt et al., 2016)
    n_step: int
    collectors: int
    environments: int  # of each collector
    decisions: int
    buffer: int  # decisions
    learning_starts: int  # decisions
    exploration: int  # decisions
    final_epsilon: float
    python: str | None  # the collectors' interpreter, None for this one
    seed: int
    replay_ratio: float  # samples learned for each decision taken in
    batch: int
    learning_rate: float  # of Adam
    discount: float  # of what follows an action, however many frames it lasts
    gradient_clip: float  # the most that the gradient's norm may be, 0 for no limit
    publish_every: int  # updates
    target_every: int  # decisions
    evaluate_every: int  # decisions
    games: int  # of an evaluation
    checkpoints: list[int]  # decisions
    stack: int = 4  # frames of an observation
    autocast: bool = True  # bfloat16 on a CPU that computes in it; float16, scaled, on CUDA
    device: str | None = None  # of PyTorch, None for CUDA where it is

    @property
    def interpreter(self) -> str:
        """The collectors' Python."""
        return self.python or sys.executable

    @property
    def num_envs(self) -> int:
        """All environments."""
        return self.collectors * self.environments

    @property
    def ring(self) -> int:
        """The steps that a collector's ring holds, the most by which it is ahead."""
        return RING * self.environments

    @property
    def checkpoint_steps(self) -> list[int]:
        """The decisions after which weights are evaluated, increasing."""
        every = range(self.evaluate_every, self.decisions, self.evaluate_every)
        kept = (step for step in self.checkpoints if step < self.decisions)
        return sorted({*every, *kept, self.decisions})

    def epsilon(self, decisions: int) -> float:
        """Return the share of random actions after so many decisions."""
        progress = min(decisions / max(self.exploration, 1), 1.0)
        return 1.0 + progress * (self.final_epsilon - 1.0)

    def rate_left(self, decisions: int) -> float:
        """Return the share of the learning rate after so many decisions: from 1 to 0.1."""
        return 1.0 - 0.9 * min(decisions / self.decisions, 1.0)
