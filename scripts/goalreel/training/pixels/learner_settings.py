"""How the network of the pixel pipeline is shaped and trained; no PyTorch is needed to say so.

The layers are those of V. Mnih et al., "Human-level control through deep reinforcement learning"
(2015), table "Network architecture". What is done with the settings stands in pixel_learner, what
the layers compute in network (PyTorch, for learning) and acting (NumPy, for collectors).
"""

from dataclasses import dataclass

from goalreel.errors import GoalreelError

SIDE = 84  # pixels; frames are square
CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))  # filters, side of the kernel, stride
HIDDEN = 512
DEVICES = ("auto", "cpu", "cuda")


@dataclass(frozen=True)
class LearnerSettings:
    """How to learn.

    batch, accumulation: an update follows the mean gradient of `accumulation` batches
    autocast: bfloat16 on a CPU that computes in it; on CUDA float16, with a gradient scaler
    compile: torch.compile, where it works; on a CPU an update was measured to take as long without
    clip_norm: the most that the gradient's norm may be, None for no limit
    learning_rate: of Adam; the default is RL Baselines3 Zoo's for Atari
    double: Double DQN (H. van Hasselt et al., 2016)
    stack: frames that the network sees
    normalise: BatchNorm after each convolution; without it the convolutions have biases
    """

    batch: int = 512
    accumulation: int = 4
    autocast: bool = True
    compile: bool = False
    clip_norm: float | None = None
    learning_rate: float = 1e-4
    discount: float = 0.99
    double: bool = True
    device: str = "auto"
    stack: int = 4
    normalise: bool = True

    def __post_init__(self):
        """Raise GoalreelError for a value that cannot be."""
        for name in ("batch", "accumulation", "stack"):
            if (value := getattr(self, name)) < 1:
                raise GoalreelError(f"pixels.{name}: {value} is less than 1")
        if self.learning_rate <= 0:
            raise GoalreelError(f"pixels.learning_rate: {self.learning_rate} is not above 0")
        if not 0 <= self.discount <= 1:
            raise GoalreelError(f"pixels.discount: {self.discount} is not between 0 and 1")
        if self.clip_norm is not None and self.clip_norm <= 0:
            raise GoalreelError(f"pixels.gradient_clip: {self.clip_norm} is not above 0; or null")
        if self.device not in DEVICES:
            raise GoalreelError(
                f"device: {self.device!r} is unknown; allowed: {', '.join(DEVICES)}"
            )


def side_after_convolutions(side: int = SIDE) -> int:
    """Return the side of the last convolution's output."""
    for _, kernel, stride in CONVOLUTIONS:
        side = (side - kernel) // stride + 1
    return side
