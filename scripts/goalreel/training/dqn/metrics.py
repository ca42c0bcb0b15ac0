"""The figures of a training: metrics.json, which also holds the checksum of the training's log."""

import csv
import io
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from goalreel.files.atomic import write_text
from goalreel.provenance.checksums import read_digests, with_digests
from goalreel.provenance.spec import Spec

SOLVED = -110.0  # the mean return of 100 episodes at which Gymnasium calls the environment solved


@dataclass(frozen=True)
class Metrics:
    """Of one training."""

    variant: str
    seed: int
    decisions: int  # choices of an action, of all environments
    frames: int  # steps of the environments
    seconds: float  # wall clock without evaluations, as the CPU time is
    cpu_seconds: float  # of all processes
    load: float  # the machine's mean load in the last minute of the training
    cores: int  # that the training could use
    checkpoints: tuple[int, ...]  # decisions up to each evaluation
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
        """Whether it ended since the environment was solved."""
        return self.last >= SOLVED

    @property
    def loaded(self) -> bool:
        """Whether other work slowed it down: on free cores one of its processes always computes."""
        return self.load > self.cores or self.cpu_seconds < 0.9 * self.seconds

    def __str__(self) -> str:
        """Return them in a line."""
        return (
            f"{self.variant}, seed {self.seed}: {'' if self.solved else 'not '}solved in "
            f"{self.decisions:,} decisions ({self.frames:,} frames), {self.seconds:.1f} s, "
            f"{self.cpu_seconds:.1f} s of CPU time, {self.rate:,.0f} decisions/s; "
            f"mean return {self.last:.1f}{'; the machine was loaded' if self.loaded else ''}"
        )


def write_metrics(path: str | os.PathLike, metrics: Metrics, spec: Spec, log: Path) -> None:
    """Write the metrics as JSON, with the spec that they were made by and the log's checksum."""
    write_text(path, with_digests(spec.extended(metrics=asdict(metrics)), [log]))


def read_metrics(path: Path) -> Metrics:
    """Read metrics.json. Raises GoalreelError without one, UnusableFileError if it is damaged."""
    read_digests(path)  # which checks that it is as it was written
    values = json.loads(path.read_text(encoding="ascii"))["metrics"]
    return Metrics(**{n: tuple(v) if isinstance(v, list) else v for n, v in values.items()})


def csv_of(header: Iterable[str], rows: Iterable[Iterable]) -> str:
    """Return a header and rows as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()
