"""The settings of a training from pixels, without PyTorch."""

import sys
from types import SimpleNamespace

RING = 16  # steps per environment that a collector may be ahead of the trainer


class PipelineSettings(SimpleNamespace):
    """The options of `configuration.options.Pixels`, which describes them, and three more.

    Attributes:
        stack: number of frames in an observation.
        autocast: whether to compute in bfloat16 (CPU, if it can) or scaled float16 (CUDA).
        device: the PyTorch device; None is CUDA if available, else the CPU.
    """

    stack, autocast, device = 4, True, None

    @property
    def interpreter(self) -> str:
        """The Python interpreter of the collectors."""
        return self.python or sys.executable

    @property
    def envs_per_collector(self) -> int:
        """The number of environments of a collector."""
        return self.n_envs // self.collectors

    @property
    def ring(self) -> int:
        """The number of steps in a collector's ring, and so its maximum lead."""
        return RING * self.envs_per_collector

    @property
    def checkpoint_steps(self) -> list[int]:
        """The decisions after which the weights are evaluated, increasing."""
        every = range(self.eval_freq, self.total_timesteps, self.eval_freq)
        kept = (step for step in self.checkpoints if step < self.total_timesteps)
        return sorted({*every, *kept, self.total_timesteps})

    def epsilon(self, decisions: int) -> float:
        """Return the share of random actions after a number of decisions."""
        last = max(round(self.exploration_fraction * self.total_timesteps), 1)
        return 1.0 + min(decisions / last, 1.0) * (self.exploration_final_eps - 1.0)

    def rate_left(self, decisions: int) -> float:
        """Return the factor of the learning rate after a number of decisions: from 1 to 0.1."""
        return 1.0 - 0.9 * min(decisions / self.total_timesteps, 1.0)
