"""A training from pixels as a whole: begun or resumed, run, saved where it stops, and written.

A training that SIGINT, SIGTERM or a failure stops is saved with its replay buffer; the next one of
the same settings and code resumes from there. The monitor's table so far is beside it, as .csv.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch

from goalreel.cli import say
from goalreel.errors import GoalreelError, Stopped
from goalreel.files.atomic import replacing
from goalreel.policies.network_file import PixelCheckpoints, write_checkpoints
from goalreel.provenance.spec import Spec
from goalreel.training.games.settings import GameSettings
from goalreel.training.pixels import checkpoint
from goalreel.training.pixels.collectors import actions_of
from goalreel.training.pixels.learner import PixelLearner
from goalreel.training.pixels.monitor import write_rows
from goalreel.training.pixels.session import Session, Sums, interrupts
from goalreel.training.pixels.settings import PipelineSettings
from goalreel.training.pixels.trainer import Trainer
from goalreel.training.shared_memory import child_process


@dataclass(frozen=True)
class Trained:
    """The outcome of a training."""

    game: Mapping  # GameSettings as a dict
    actions: int  # of the game
    settings: PipelineSettings
    trainer: Trainer
    sums: Sums
    rows: list  # of the monitor's table

    def metrics(self) -> dict:
        """Return the figures of metrics.json.

        `decisions` were taken into the buffer, `played` are the steps of environments, dropped ones
        included; `blocked` and `learning` are shares of the time, of a collector and of the
        learner; `cpu_seconds` of all processes; `best` is the step of the best evaluation, and
        `evaluations` have checkpoint_step, seconds of training, and the returns of their games.
        """
        trainer, sums, seconds = self.trainer, self.sums, max(self.sums.seconds, 1e-9)
        return {
            **{"decisions": sums.steps, "played": sums.played, "seconds": sums.seconds},
            **{"cpu_seconds": sums.cpu_seconds, "decisions_per_s": sums.steps / seconds},
            **{"updates": trainer.updates, "samples": trainer.samples, "games": trainer.games},
            **{"drops": sums.drops, "restarts": sums.restarts, "sessions": sums.sessions},
            "blocked": sums.blocked / seconds / self.settings.collectors,
            **{"learning": sums.learning / seconds, "best": trainer.best.checkpoint_step},
            "evaluations": [asdict(evaluation) for evaluation in trainer.evaluations],
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
    game = GameSettings(settings.game, settings.frame_skip).filled()
    child_process.keep_freed_memory()
    with interrupts() as asked:
        actions = actions_of(settings.interpreter, asdict(game))
        # On a CPU compiling takes a minute and gains little.
        settings = replace(settings, compile=torch.cuda.is_available())
        trainer = Trainer(settings, PixelLearner(settings, actions, settings.seed))
        identity = checkpoint.identity_of(asdict(game), settings, actions, code)
        sums, rows = _resumed(saved, identity, trainer)
        session = Session(settings, asdict(game), trainer, sums, rows, table_of(saved))
        failure = _run(session, asked)
        if failure:
            outcome = _saved(saved, identity, trainer, session)
            if isinstance(failure, GoalreelError):
                raise type(failure)(f"{failure}{outcome}")
            say(f"the training failed{outcome}")
            raise failure
        return Trained(asdict(game), actions, settings, trainer, session.sums, session.rows)


def table_of(saved: Path) -> Path:
    """Return the path of the monitor's table until the training is finished."""
    return saved.with_suffix(".csv")


def _run(session: Session, asked: list[str]) -> Exception | None:
    """Run a session; return what stopped it, None if it came to its end."""
    try:
        session.run(asked)
    except Exception as error:  # also of CUDA, of memory, of the replay feeder's thread
        return error
    return Stopped(f"stopped by {asked[0]}") if asked else None


def _resumed(saved: Path, identity: Mapping, trainer: Trainer) -> tuple[Sums, list]:
    """Resume from a checkpoint if it exists; return the sums and rows of the sessions before."""
    if not saved.exists():
        return Sums(), []
    progress = checkpoint.resume(saved, identity, trainer.learner, trainer.replay)
    trainer.restore(progress["trainer"])
    sums = Sums(**progress["sums"])
    say(f"{saved}: resumed after {sums.steps:,} decisions")
    return sums, progress["rows"]


def _saved(saved: Path, identity: Mapping, trainer: Trainer, session: Session) -> str:
    """Save a training that has stopped, if it has begun; return the end of the message."""
    if not session.sums.steps:
        return ""
    done = f"{session.sums.steps:,} of {session.settings.decisions:,} decisions"
    progress = {
        **{"trainer": trainer.progress(), "sums": asdict(session.sums)},
        "rows": session.rows,
    }
    arrays = trainer.replay.arrays()
    try:
        checkpoint.write_checkpoint(saved, identity, trainer.learner.state(), arrays, progress)
    except Exception as error:  # of files, of CUDA: what stopped the training matters more
        return f" after {done}; it cannot be saved in {saved}: {error}"
    return f" after {done}; it is saved in {saved}: run the same command to resume"


def write_results(policy: Path, table: Path, metrics: Path, trained: Trained, spec: Spec) -> str:
    """Write policy, table and metrics; return a summary in a line."""
    trainer, figures = trained.trainer, trained.metrics()
    evaluated = {evaluation.checkpoint_step: evaluation for evaluation in trainer.evaluations}
    checkpoint_steps = tuple(sorted(trainer.kept))
    write_checkpoints(
        policy,
        PixelCheckpoints(
            checkpoint_steps,
            tuple(evaluated[step].mean for step in checkpoint_steps),
            tuple(trainer.kept[step] for step in checkpoint_steps),
            spec,
            game=trained.game,
            actions=trained.actions,
            stack=trained.settings.stack,
        ),
    )
    write_rows(table, trained.rows)
    with replacing(metrics) as temporary:
        text = spec.extended(metrics=figures).text
        Path(temporary).write_text(text + "\n", encoding="utf-8")
    best = trainer.best
    return (
        f"{trained.game['game']}: {figures['decisions']:,} decisions in "
        f"{figures['seconds']:,.1f} s, {figures['decisions_per_s']:,.0f}/s; {trainer.updates:,} "
        f"updates from {trainer.samples:,} samples; best "
        f"after {best.checkpoint_step:,} decisions and {best.seconds:,.0f} s: "
        f"mean return {best.mean:.1f} of {len(best.returns)} greedy games"
    )
