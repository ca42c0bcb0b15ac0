"""What came of a training, in numbers: metrics.json, which also tells the log's checksum."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from goalreel.errors import Unusable
from goalreel.files.atomic import replacing
from goalreel.provenance.checksums import read_digests, with_digests
from goalreel.provenance.spec import canonical

SOLVED = -110.0  # the mean return of 100 episodes at which Gymnasium calls the environment solved


@dataclass(frozen=True)
class Metrics:
    """Of one training.

    deterministic: whether the same seed gives the same weights again
    fps: frames of the environment for each second of the clock; solved_frames, solved_seconds: up
    to the first evaluation of -110 or better, None if there was none; best, last: mean returns
    ages, clock, means: of every evaluation the frames and the seconds up to it, and its mean return
    """

    variant: str
    seed: int
    deterministic: bool
    frames: int
    seconds: float
    fps: float
    solved_frames: int | None
    solved_seconds: float | None
    best: float
    last: float
    ages: tuple[int, ...]
    clock: tuple[float, ...]
    means: tuple[float, ...]

    def __str__(self) -> str:
        """Return them in a line."""
        solved = (
            f"solved after {self.solved_frames:,} frames, {self.solved_seconds:.1f} s"
            if self.solved_frames is not None
            else "not solved"
        )
        return (
            f"{self.variant}, seed {self.seed}: {self.frames:,} frames in {self.seconds:.1f} s, "
            f"{self.fps:,.0f} FPS; {solved}; mean return {self.best:.1f} at best, "
            f"{self.last:.1f} at last"
        )


def metrics_of(trained, variant: str, seed: int, deterministic: bool) -> Metrics:
    """Return the metrics of a training (training.Trained)."""
    evaluations = trained.evaluations
    means = tuple(evaluation.mean for evaluation in evaluations)
    frames, seconds = trained.solved or (None, None)
    fps = trained.frames / trained.seconds
    return Metrics(
        *(variant, seed, deterministic),
        *(trained.frames, trained.seconds, fps, frames, seconds),
        *(max(means), means[-1]),
        tuple(evaluation.frames for evaluation in evaluations),
        tuple(evaluation.seconds for evaluation in evaluations),
        means,
    )


def write_metrics(path: str | os.PathLike, metrics: Metrics, spec: str, log: Path) -> None:
    """Write the metrics as JSON, with the spec that they were made by and the log's checksum."""
    told = canonical({**json.loads(spec), "metrics": asdict(metrics)})
    with replacing(path) as temporary:
        Path(temporary).write_text(with_digests(told, [log]), encoding="ascii")


def read_metrics(path: Path) -> Metrics:
    """Read metrics.json. Raises GoalreelError if there is none, Unusable if it is not whole."""
    read_digests(path)  # which tells whether it is as it was written
    try:
        told = json.loads(path.read_text(encoding="ascii"))["metrics"]
        lists = {name: tuple(told[name]) for name in ("ages", "clock", "means")}
        return Metrics(**{**told, **lists})
    except (KeyError, TypeError, ValueError) as error:
        raise Unusable(path, f"it holds no metrics ({error!r})") from None
