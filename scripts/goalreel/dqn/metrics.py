"""What came of a training, in numbers: metrics.json, and the table over all trainings."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from goalreel.atomic import replacing
from goalreel.dqn.training import Trained
from goalreel.spec import canonical


@dataclass(frozen=True)
class Metrics:
    """Of one training.

    fps: frames of the environment for each second of the clock; solved_frames, solved_seconds: up
    to the first evaluation of -110 or better, None if there was none; best, last: mean returns
    """

    variant: str
    seed: int
    frames: int
    seconds: float
    fps: float
    solved_frames: int | None
    solved_seconds: float | None
    best: float
    last: float

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


def metrics_of(trained: Trained, variant: str, seed: int) -> Metrics:
    """Return the metrics of a training."""
    means = [evaluation.mean for evaluation in trained.evaluations]
    frames, seconds = trained.solved or (None, None)
    fps = trained.frames / trained.seconds
    return Metrics(
        *(variant, seed, trained.frames, trained.seconds, fps, frames, seconds),
        *(max(means), means[-1]),
    )


def write_metrics(path: str | os.PathLike, metrics: Metrics, spec: str) -> None:
    """Write the metrics with the spec that they were made by, as JSON."""
    with replacing(path) as temporary:
        told = canonical({**json.loads(spec), "metrics": asdict(metrics)})
        Path(temporary).write_text(told + "\n", encoding="utf-8")
