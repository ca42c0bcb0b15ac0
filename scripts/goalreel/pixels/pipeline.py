"""A training from pixels as a whole: set up, gone on from a checkpoint, saved, brought to its end.

What happens in between stands in session. A training that SIGINT, SIGTERM or a failure stops is
saved with its replay buffer; the next one of the same settings and code goes on from there.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from goalreel.errors import GoalreelError
from goalreel.games import GameSettings
from goalreel.pixels import checkpoint
from goalreel.pixels.collectors import actions_of
from goalreel.pixels.distributed import make_learner
from goalreel.pixels.interrupts import Interrupts
from goalreel.pixels.session import Session, Sums
from goalreel.pixels.settings import PipelineSettings
from goalreel.pixels.trainer import Trainer
from goalreel.program import say


@dataclass(frozen=True)
class Trained:
    """What a training came to.

    game: its settings; stack: frames that the network sees; frames: that were taken in
    rows: of the monitor's table; mean: return of the latest games, nan of none
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
    for bad settings, for a file of others, and, once that is written, if it was stopped.
    """
    game = GameSettings(settings.game).filled()
    with Interrupts() as interrupts:
        actions = actions_of(settings.interpreter, asdict(game))
        # On a CPU compiling takes a minute and gains little.
        how = settings.learner(compile=torch.cuda.is_available())
        with make_learner(how, actions, settings.seed) as learner:
            trainer = Trainer(settings, learner, how.stack, game.skip)
            others = {"collectors": settings.collectors, "environments": settings.environments}
            others |= {"buffer": settings.buffer, "code": code}
            identity = checkpoint.identity_of(asdict(game), how, actions) | others
            session = Session(settings, asdict(game), trainer, *_resumed(saved, identity, trainer))
            stopped = _run(session, interrupts)
            frames = trainer.frames(session.sums.steps)
            if stopped:
                if not session.sums.steps:
                    raise GoalreelError(stopped)
                _save(saved, identity, trainer, session)
                raise GoalreelError(
                    f"{stopped} after {frames:,} of {settings.frames:,} frames; all is saved in "
                    f"{saved}: run it again to go on"
                )
            mean, last = trainer.means()[0], learner.weights()
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


def _run(session: Session, interrupts: Interrupts) -> str | None:
    """Run a session; return what stopped it, None if it came to its end."""
    try:
        session.run(interrupts)
    except GoalreelError as error:
        return str(error)
    return interrupts.asked and f"stopped by {interrupts.asked}"


def _resumed(saved: Path, identity: Mapping, trainer: Trainer) -> tuple[Sums, list]:
    """Have a trainer go on from a file if there is one; return what the sessions before came to."""
    if not saved.exists():
        return Sums(), []
    progress = checkpoint.resume(saved, identity, trainer.learner, trainer.replay)
    trainer.go_on(progress["trainer"])
    sums = Sums(**progress["sums"])
    say(f"{saved}: going on after {trainer.frames(sums.steps):,} frames")
    return sums, progress["rows"]


def _save(saved: Path, identity: Mapping, trainer: Trainer, session: Session) -> None:
    progress = {
        **{"trainer": trainer.progress(), "sums": asdict(session.sums)},
        "rows": session.rows,
    }
    arrays = trainer.replay.arrays()
    checkpoint.write_checkpoint(saved, identity, trainer.learner.state(), arrays, progress)
