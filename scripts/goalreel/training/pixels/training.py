"""A training from pixels as a whole: set up, gone on from a checkpoint, saved, brought to its end.

What happens in between stands in session. A training that SIGINT, SIGTERM or a failure stops is
saved with its replay buffer; the next one of the same settings and code goes on from there. The
monitor's table so far stands beside, as .csv.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from goalreel.cli import say
from goalreel.errors import GoalreelError
from goalreel.training.games.settings import GameSettings
from goalreel.training.pixels import checkpoint
from goalreel.training.pixels.collectors import actions_of
from goalreel.training.pixels.distributed import make_learner
from goalreel.training.pixels.interrupts import Interrupts
from goalreel.training.pixels.session import Session, Sums
from goalreel.training.pixels.settings import PipelineSettings
from goalreel.training.pixels.trainer import Trainer

_FREE = ("frames", "replay_ratio", "backpressure", "python")  # options that may change on the way


@dataclass(frozen=True)
class Trained:
    """What a training came to.

    game: its settings; stack: frames that the network sees; frames: that were taken in
    rows: of the monitor's table; mean: return of the latest games, nan of too few
    best: mean return, frames and weights of when it was the highest
    """

    game: Mapping
    actions: int
    stack: int
    collectors: int
    frames: int
    updates: int
    samples: int
    games: int
    sums: Sums
    rows: list
    mean: float
    best: tuple[float, int, Mapping[str, np.ndarray]]
    last: Mapping[str, np.ndarray]


def train(settings: PipelineSettings, saved: Path, code: str = "") -> Trained:
    """Train, from what was saved on if there is a file.

    code: fingerprint of the program, by which the file must have been made. Raises GoalreelError
    for bad settings, for a file of others, and, once that is written, if it was stopped. Any other
    failure is raised as it is, once the training is saved.
    """
    game = GameSettings(settings.game, skip=settings.skip, warp=settings.warp).filled()
    with Interrupts() as interrupts:
        actions = actions_of(settings.interpreter, asdict(game))
        # On a CPU compiling takes a minute and gains little.
        how = settings.learner(compile=torch.cuda.is_available())
        with make_learner(how, actions, settings.seed) as learner:
            trainer = Trainer(settings, learner, how.stack, game.skip)
            options = {n: value for n, value in asdict(settings).items() if n not in _FREE}
            identity = checkpoint.identity_of(asdict(game), how, actions)
            identity |= {"pixels": options, "code": code}
            sums, rows = _resumed(saved, identity, trainer)
            table = table_of(saved)
            session = Session(settings, asdict(game), trainer, sums, rows, table)
            failure = _run(session, interrupts)
            frames = trainer.frames(session.sums.steps)
            if failure:
                told = _saved(saved, identity, trainer, session)
                if isinstance(failure, GoalreelError):
                    raise GoalreelError(f"{failure}{told}")
                say(f"the training failed{told}")
                raise failure
            mean, last = trainer.mean, learner.weights()
            return Trained(
                *(asdict(game), actions, how.stack, settings.collectors, frames),
                *(
                    trainer.updates,
                    trainer.samples,
                    trainer.games,
                    session.sums,
                    session.rows,
                    mean,
                ),
                *(trainer.best or (mean, frames, last), last),
            )


def table_of(saved: Path) -> Path:
    """Return where the monitor's table stands until the training is finished."""
    return saved.with_suffix(".csv")


def _run(session: Session, interrupts: Interrupts) -> Exception | None:
    """Run a session; return what stopped it, None if it came to its end."""
    try:
        session.run(interrupts)
    except Exception as error:  # also of CUDA, of memory, of the thread that fills the buffer
        return error
    return GoalreelError(f"stopped by {interrupts.asked}") if interrupts.asked else None


def _resumed(saved: Path, identity: Mapping, trainer: Trainer) -> tuple[Sums, list]:
    """Have a trainer go on from a file if there is one; return what the sessions before came to."""
    if not saved.exists():
        return Sums(), []
    progress = checkpoint.resume(saved, identity, trainer.learner, trainer.replay)
    trainer.go_on(progress["trainer"])
    sums = Sums(**progress["sums"])
    say(f"{saved}: going on after {trainer.frames(sums.steps):,} frames")
    return sums, progress["rows"]


def _saved(saved: Path, identity: Mapping, trainer: Trainer, session: Session) -> str:
    """Save a training that has stopped, if it has begun; return what to say of it."""
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
    except Exception as error:  # of files, of CUDA: what stopped the training is told all the same
        return f" after {frames}; it cannot be saved in {saved}: {error}"
    return f" after {frames}; all is saved in {saved}: run it again to go on"
