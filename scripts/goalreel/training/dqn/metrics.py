"""The figures of a training: metrics.json, which also holds the checksum of the training's log."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from goalreel.errors import Unusable
from goalreel.files.atomic import replacing
from goalreel.provenance.checksums import read_digests, with_digests
from goalreel.provenance.spec import Spec

SOLVED = -110.0  # the mean return of 100 episodes at which Gymnasium calls the environment solved


@dataclass(frozen=True)
class Metrics:
    """Of one training."""

    variant: str
    seed: int
    deterministic: bool  # the same seed gives the same weights again
    frames: int
    seconds: float
    fps: float  # frames of the environment for each second of the clock
    solved_frames: int | None  # up to the first evaluation of SOLVED or better, None without one
    solved_seconds: float | None
    best: float  # mean return
    last: float
    checkpoints: tuple[int, ...]  # frames up to each evaluation
    clock: tuple[float, ...]  # seconds up to each evaluation
    means: tuple[float, ...]  # mean return of each evaluation

    def __str__(self) -> str:
        """Return them in a line."""
        solved = (
            f"solved after {self.solved_frames:,} frames, {self.solved_seconds:.1f} s"
            if self.solved_frames is not None
            else "not solved"
        )
        return (
            f"{self.variant}, seed {self.seed}: {self.frames:,} frames in {self.seconds:.1f} s, "
            f"{self.fps:,.0f} FPS; {solved}; mean return: best {self.best:.1f}, "
            f"last {self.last:.1f}"
        )


def metrics_of(trained, variant: str, seed: int, deterministic: bool) -> Metrics:
    """Return the metrics of a training (training.Trained)."""
    frames, clock, means = zip(
        *((one.frames, one.seconds, one.mean) for one in trained.evaluations), strict=True
    )
    return Metrics(
        *(variant, seed, deterministic, trained.frames, trained.seconds),
        *(trained.frames / trained.seconds, *(trained.solved or (None, None))),
        *(max(means), means[-1], frames, clock, means),
    )


def write_metrics(path: str | os.PathLike, metrics: Metrics, spec: Spec, log: Path) -> None:
    """Write the metrics as JSON, with the spec that they were made by and the log's checksum."""
    text = spec.extended(metrics=asdict(metrics))
    with replacing(path) as temporary:
        Path(temporary).write_text(with_digests(text, [log]), encoding="ascii")


def read_metrics(path: Path) -> Metrics:
    """Read metrics.json. Raises GoalreelError if there is none, Unusable if it is damaged."""
    read_digests(path)  # which checks that it is as it was written
    try:
        values = json.loads(path.read_text(encoding="ascii"))["metrics"]
        lists = {name: tuple(values[name]) for name in ("checkpoints", "clock", "means")}
        return Metrics(**{**values, **lists})
    except (KeyError, TypeError, ValueError) as error:
        raise Unusable(path, f"it holds no metrics ({error!r})") from None
