"""The settings of a training from pixels, as the configuration's section `pixels` gives them."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields

from goalreel.errors import GoalreelError
from goalreel.training.pixels.learner_settings import LearnerSettings

BACKPRESSURES = ("block", "drop")
_EXPLORATION, _LAST_EPSILON = 0.2, 0.05  # share of the frames over which epsilon falls from 1
_RING = 4096  # steps of a collector's ring, 29 MB of frames
BATCH = 1000  # steps that are taken into the buffer at a time, if not more


@dataclass(frozen=True)
class PipelineSettings:
    """How to train from pixels; the options of the section `pixels` (config.schema.yaml).

    frames: in steps of environments, `skip` for each action, those after an episode's end too
    skip, warp: see games.GameSettings
    buffer: steps of the replay buffer; python: the collectors' interpreter, None for this one
    discount: of what follows an action, however many frames it lasts
    replay_ratio: samples that are learned for each step that is taken into the buffer; the faster
    side waits for the other. None: neither waits
    publish_every, target_every: in updates
    """

    game: str
    skip: int
    warp: str
    collectors: int
    environments: int
    frames: int
    buffer: int
    backpressure: str
    python: str | None
    seed: int
    replay_ratio: float | None
    batch: int
    accumulation: int
    learning_rate: float
    discount: float
    gradient_clip: float | None
    publish_every: int
    target_every: int

    def __post_init__(self):
        """Raise GoalreelError for a value that cannot be."""
        for name in ("collectors", "environments", "frames", "publish_every", "target_every"):
            if (value := getattr(self, name)) < 1:
                raise GoalreelError(f"pixels.{name}: {value} is less than 1")
        if self.backpressure not in BACKPRESSURES:
            raise GoalreelError(
                f"pixels.backpressure: {self.backpressure!r} is unknown; allowed: "
                f"{', '.join(BACKPRESSURES)}"
            )
        if self.replay_ratio is not None and self.replay_ratio <= 0:
            raise GoalreelError(f"pixels.replay_ratio: {self.replay_ratio} is not above 0")

    @classmethod
    def of(cls, section: Mapping) -> "PipelineSettings":
        """Return the settings of a configuration's section. Raises GoalreelError."""
        names = [one.name for one in fields(cls)]
        if missing := [name for name in names if name not in section]:
            raise GoalreelError(f"pixels.{missing[0]} is missing; it has {', '.join(section)}")
        return cls(**{name: section[name] for name in names})

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
        """The steps by which the limit of what may be taken in is raised.

        A small part of the buffer at most, since learning is as far behind.
        """
        return max(min(BATCH, self.buffer // 50), 1)

    @property
    def ring(self) -> int:
        """The steps that a collector's ring holds: whole steps of all its environments."""
        return max(_RING // self.environments, 4) * self.environments

    def learner(self, **others) -> LearnerSettings:
        """Return how to learn; others: fields that the configuration does not set."""
        return LearnerSettings(
            batch=self.batch,
            accumulation=self.accumulation,
            learning_rate=self.learning_rate,
            discount=self.discount,
            clip_norm=self.gradient_clip,
            **others,
        )

    def epsilon(self, frames: int) -> float:
        """Return the share of random actions after so many frames."""
        progress = min(frames / (_EXPLORATION * self.frames), 1.0)
        return 1.0 + progress * (_LAST_EPSILON - 1.0)
