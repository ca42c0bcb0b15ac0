"""The settings of a training from pixels; no PyTorch is needed to read them."""

import sys
from types import SimpleNamespace

RING = 16  # steps of each environment that a collector may be ahead of the trainer


class PipelineSettings(SimpleNamespace):
    """How to train: the options of `configuration.options.Pixels`, which says what each means.

    Attributes:
        stack: frames of an observation.
        autocast: compute in bfloat16 on a CPU that can; in float16, scaled, on CUDA.
        device: of PyTorch, None for CUDA where it is.
    """

    stack, autocast, device = 4, True, None

    @property
    def interpreter(self) -> str:
        """The collectors' Python."""
        return self.python or sys.executable

    @property
    def envs_per_collector(self) -> int:
        """The environments of each collector."""
        return self.n_envs // self.collectors

    @property
    def ring(self) -> int:
        """The steps that a collector's ring holds, the most by which it is ahead."""
        return RING * self.envs_per_collector

    @property
    def checkpoint_steps(self) -> list[int]:
        """The decisions after which weights are evaluated, increasing."""
        every = range(self.eval_freq, self.total_timesteps, self.eval_freq)
        kept = (step for step in self.checkpoints if step < self.total_timesteps)
        return sorted({*every, *kept, self.total_timesteps})

    def epsilon(self, decisions: int) -> float:
        """Return the share of random actions after so many decisions."""
        last = max(round(self.exploration_fraction * self.total_timesteps), 1)
        return 1.0 + min(decisions / last, 1.0) * (self.exploration_final_eps - 1.0)

    def rate_left(self, decisions: int) -> float:
        """Return the share of the learning rate after so many decisions: from 1 to 0.1."""
        return 1.0 - 0.9 * min(decisions / self.total_timesteps, 1.0)
