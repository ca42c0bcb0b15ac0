"""The variants of training that are compared: one known good setting, and what each changes of it.

The baseline's hyperparameters are those of RL Baselines3 Zoo for MountainCar-v0
(hyperparams/dqn.yml).
"""

from dataclasses import dataclass, replace

from goalreel.errors import GoalreelError


@dataclass(frozen=True)
class Settings:
    """How to train. A frame is a step of an environment."""

    frames: int = 120_000
    learning_rate: float = 4e-3
    batch: int = 128
    buffer: int = 10_000  # transitions
    start: int = 1_000  # frames before the first gradient step
    discount: float = 0.98
    target_every: int = 600  # frames
    train_every: int = 16  # frames
    gradient_steps: int = 8  # every `train_every` frames
    exploration: float = 0.2  # share of all frames over which epsilon falls from 1
    final_epsilon: float = 0.07
    hidden: tuple[int, ...] = (256, 256)
    double: bool = False  # Double DQN
    no_grad: bool = True
    lanes: int = 1  # environments that are stepped side by side
    wrapped: bool = True  # Gymnasium's own environments and wrappers, or physics' lanes
    frame_skip: int = 1  # frames that an action lasts
    rescaled: bool = False  # the network takes observations from -1 to 1
    fused: bool = False  # Adam updates all weights in one pass of PyTorch's
    parallel: bool = False  # playing has a process of its own

    @property
    def deterministic(self) -> bool:
        """Whether the same seed gives the same weights; two processes go each at its own pace."""
        return not self.parallel


_BASELINE = Settings()
_SKIP = 12  # fewer, and random actions hardly ever reach the goal: 1 episode of 2,000 with 4
# Without Gymnasium's wrappers, and with frames skipped. What the baseline counts in frames counts
# in actions here, as Stable-Baselines3 counts the steps of an environment that skips.
_WRAPPERS = replace(
    _BASELINE,
    wrapped=False,
    frame_skip=_SKIP,
    lanes=16,
    **{name: getattr(_BASELINE, name) * _SKIP for name in ("start", "target_every", "train_every")},
)
VARIANTS = {
    "baseline": _BASELINE,
    "without_no_grad": replace(_BASELINE, no_grad=False),
    "environments_3": replace(_BASELINE, lanes=3),
    # With more, playing takes hardly less of the time: learning takes nearly all of it.
    "environments_16": replace(_BASELINE, lanes=16),
    "parallel": replace(_BASELINE, parallel=True),
    "wrappers_environments": _WRAPPERS,
    "wrappers_parallel": replace(_WRAPPERS, parallel=True),
    # Gradient steps are what costs: fewer of them, each cheaper. In one process, since playing
    # takes a few hundredths of the time, and so with the same weights each time.
    "fast": replace(
        _BASELINE,
        wrapped=False,
        frame_skip=_SKIP,
        lanes=16,
        hidden=(128, 128),
        gradient_steps=1,
        rescaled=True,
        fused=True,
    ),
}


def settings_of(variant: str, frames: int, double: bool = False) -> Settings:
    """Return a variant's settings. Raises GoalreelError if there is no such variant."""
    if variant not in VARIANTS:
        raise GoalreelError(f"no variant {variant!r}; allowed: {', '.join(VARIANTS)}")
    return replace(VARIANTS[variant], frames=frames, double=double)
