"""A training from pixels as a whole: begun or resumed, run, saved where it stops, and written.

A training that SIGINT, SIGTERM or a failure stops is saved with its replay buffer; the next one of
the same settings and code resumes from there. The monitor's table so far is beside it, as .csv.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from goalreel.cli import say
from goalreel.errors import GoalreelError
from goalreel.files.atomic import replacing
from goalreel.policies.pixel_checkpoints import PixelCheckpoints, write_pixel_checkpoints
from goalreel.provenance.spec import Spec
from goalreel.training.games.settings import GameSettings
from goalreel.training.pixels import checkpoint
from goalreel.training.pixels.collectors import actions_of
from goalreel.training.pixels.learner import PixelLearner
from goalreel.training.pixels.monitor import write_rows
from goalreel.training.pixels.session import Session, Sums, interrupts
from goalreel.training.pixels.settings import PipelineSettings
from goalreel.training.pixels.trainer import Trainer

_FREE = ("frames", "replay_ratio", "backpressure", "python")  # options that may change on the way


@dataclass(frozen=True)
class Trained:
    """The outcome of a training."""

    game: Mapping  # GameSettings as a dict
    actions: int  # of the game
    collectors: int
    trainer: Trainer
    sums: Sums
    rows: list  # of the monitor's table
    frames: int  # taken in
    last: Mapping[str, np.ndarray]  # weights

    @property
    def best(self) -> tuple[float, int, Mapping[str, np.ndarray]]:
        """The highest mean return, its frames and weights: the last ones where games are few."""
        return self.trainer.best or (self.trainer.mean, self.frames, self.last)

    def metrics(self) -> dict:
        """Return the figures of metrics.json.

        `frames` and `steps` were taken into the buffer, `played` are all frames, dropped ones
        included; `fps` and `samples_per_s` are for each second; `blocked` and `learning` shares of
        the time, of a collector and of the learner; `best` and `last` mean returns, None where no
        game or too few had ended.
        """
        trainer, sums, seconds = self.trainer, self.sums, max(self.sums.seconds, 1e-9)
        return {
            **{"frames": self.frames, "steps": sums.steps, "played": sums.played},
            **{"seconds": sums.seconds, "fps": self.frames / seconds},
            **{"updates": trainer.updates, "samples": trainer.samples},
            **{"samples_per_s": trainer.samples / seconds, "games": trainer.games},
            **{"drops": sums.drops, "restarts": sums.restarts, "sessions": sums.sessions},
            "blocked": sums.blocked / seconds / max(self.collectors, 1),
            **{"learning": sums.learning / seconds, "best_frames": self.best[1]},
            **{"best": _known(self.best[0]), "last": _known(trainer.mean)},
        }


def train(settings: PipelineSettings, saved: Path, code: str = "") -> Trained:
    """Train, or resume a training.

    Args:
        settings: how.
        saved: the checkpoint, from which it resumes if it exists.
        code: fingerprint of the program, by which the checkpoint must have been made.

    Raises:
        GoalreelError: for bad settings, for a checkpoint of others, and, once that is written, if
            it was stopped. Any other failure is raised as it is, once the training is saved.
    """
    game = GameSettings(settings.game, settings.frame_skip, warp=settings.warp).filled()
    with interrupts() as asked:
        actions = actions_of(settings.interpreter, asdict(game))
        # On a CPU compiling takes a minute and gains little.
        how = settings.learner(compile=torch.cuda.is_available())
        learner = PixelLearner(how, actions, settings.seed)
        trainer = Trainer(settings, learner, how.stack)
        options = {n: value for n, value in asdict(settings).items() if n not in _FREE}
        identity = checkpoint.identity_of(asdict(game), how, actions)
        identity |= {f"pixels.{name}": value for name, value in options.items()} | {"code": code}
        sums, rows = _resumed(saved, identity, trainer)
        session = Session(settings, asdict(game), trainer, sums, rows, table_of(saved))
        failure = _run(session, asked)
        frames = trainer.frames(session.sums.steps)
        if failure:
            outcome = _saved(saved, identity, trainer, session)
            if isinstance(failure, GoalreelError):
                raise GoalreelError(f"{failure}{outcome}")
            say(f"the training failed{outcome}")
            raise failure
        outcome = (trainer, session.sums, session.rows, frames, learner.weights())
        return Trained(asdict(game), actions, settings.collectors, *outcome)


def table_of(saved: Path) -> Path:
    """Return the path of the monitor's table until the training is finished."""
    return saved.with_suffix(".csv")


def _run(session: Session, asked: list[str]) -> Exception | None:
    """Run a session; return what stopped it, None if it came to its end."""
    try:
        session.run(asked)
    except Exception as error:  # also of CUDA, of memory, of the replay feeder's thread
        return error
    return GoalreelError(f"stopped by {asked[0]}") if asked else None


def _resumed(saved: Path, identity: Mapping, trainer: Trainer) -> tuple[Sums, list]:
    """Resume from a checkpoint if it exists; return the sums and rows of the sessions before."""
    if not saved.exists():
        return Sums(), []
    progress = checkpoint.resume(saved, identity, trainer.learner, trainer.replay)
    trainer.restore(progress["trainer"])
    sums = Sums(**progress["sums"])
    say(f"{saved}: resumed after {trainer.frames(sums.steps):,} frames")
    return sums, progress["rows"]


def _saved(saved: Path, identity: Mapping, trainer: Trainer, session: Session) -> str:
    """Save a training that has stopped, if it has begun; return the end of the message."""
    if not session.sums.steps:
        return ""
    frames = f"{trainer.frames(session.sums.steps):,} of {session.settings.frames:,} frames"
    progress = {
        **{"trainer": trainer.progress(), "sums": asdict(session.sums)},
        "rows": session.rows,
    }
    arrays = trainer.replay.arrays()
    try:
        checkpoint.write_checkpoint(saved, identity, trainer.learner.state(), arrays, progress)
    except Exception as error:  # of files, of CUDA: what stopped the training matters more
        return f" after {frames}; it cannot be saved in {saved}: {error}"
    return f" after {frames}; it is saved in {saved}: run the same command to resume"


def write_results(policy: Path, table: Path, metrics: Path, trained: Trained, spec: Spec) -> str:
    """Write policy, table and metrics; return a summary in a line."""
    trainer, (mean, frames, best) = trained.trainer, trained.best
    both = {trained.frames: (trainer.mean, trained.last)} | {frames: (mean, best)}
    ages = tuple(sorted(both))
    means, weights = zip(*(both[age] for age in ages), strict=True)
    write_pixel_checkpoints(
        policy,
        PixelCheckpoints(
            *(trained.game, trained.actions, trainer.replay.stack, ages, means, weights, spec),
        ),
    )
    write_rows(table, trained.rows)
    figures = trained.metrics()
    with replacing(metrics) as temporary:
        text = spec.extended(metrics=figures).text
        Path(temporary).write_text(text + "\n", encoding="utf-8")
    highest = "none" if figures["best"] is None else f"{figures['best']:.1f}"
    return (
        f"{trained.game['game']}: {trained.frames:,} frames in {figures['seconds']:,.1f} s, "
        f"{figures['fps']:,.0f} FPS; {trainer.updates:,} updates from {trainer.samples:,} samples; "
        f"best mean return {highest}"
    )


def _known(value: float) -> float | None:
    return None if value != value else value
