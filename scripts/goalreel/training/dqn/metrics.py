"""The metrics of a training: metrics.json, which also contains the checksum of its log."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from goalreel.files.atomic import write_text
from goalreel.provenance.checksums import read_digests, with_digests
from goalreel.provenance.spec import Spec

SOLVED = -110.0  # the mean return of 100 episodes at which Gymnasium calls the environment solved


@dataclass(frozen=True)
class Metrics:
    """The metrics of one training."""

    variant: str
    seed: int
    decisions: int  # of all environments
    frames: int  # environment steps
    seconds: float  # wall-clock time without evaluations
    cpu_seconds: float  # CPU time of all processes without evaluations
    load: float  # mean system load in the last minute
    cores: int  # available to the training
    checkpoints: tuple[int, ...]  # decisions before each evaluation
    means: tuple[float, ...]  # mean return of each evaluation

    @property
    def rate(self) -> float:
        """Decisions per second."""
        return self.decisions / self.seconds

    @property
    def last(self) -> float:
        """The mean return of the last evaluation."""
        return self.means[-1]

    @property
    def solved(self) -> bool:
        """Whether the training solved the environment."""
        return self.last >= SOLVED

    @property
    def loaded(self) -> bool:
        """Whether other work slowed the training, which keeps a free core busy."""
        return self.load > self.cores or self.cpu_seconds < 0.9 * self.seconds

    def __str__(self) -> str:
        """Return a summary in one line."""
        return (
            f"{self.variant}, seed {self.seed}: {'' if self.solved else 'not '}solved in "
            f"{self.decisions:,} decisions ({self.frames:,} frames), {self.seconds:.1f} s, "
            f"{self.cpu_seconds:.1f} s of CPU time, {self.rate:,.0f} decisions/s; "
            f"mean return {self.last:.1f}{'; the machine was loaded' if self.loaded else ''}"
        )


def write_metrics(path: str | os.PathLike, metrics: Metrics, spec: Spec, log: Path) -> None:
    """Write the metrics as JSON, with the spec of the training and the checksum of its log."""
    write_text(path, with_digests(spec.extended(metrics=asdict(metrics)), [log]))


def read_metrics(path: Path) -> Metrics:
    """Read metrics.json. Raises GoalreelError without one, UnusableFileError if it is damaged."""
    read_digests(path)  # raises if the file is damaged
    values = json.loads(path.read_text(encoding="ascii"))["metrics"]
    return Metrics(**{n: tuple(v) if isinstance(v, list) else v for n, v in values.items()})
