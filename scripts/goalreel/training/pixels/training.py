"""Train from pixels: start or resume a training, save it if it stops, and write its results.

If SIGINT, SIGTERM or an error stops a training, it is saved with its replay buffer. The next
training with the same settings and code resumes it. The monitor's table is next to it as .csv.
"""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from goalreel.cli import say
from goalreel.errors import GoalreelError, Stopped
from goalreel.files.atomic import write_text
from goalreel.policies.network_file import PixelCheckpoints, write_checkpoints
from goalreel.provenance.spec import Spec
from goalreel.training.games.settings import game_settings
from goalreel.training.pixels import checkpoint
from goalreel.training.pixels.collectors import actions_of
from goalreel.training.pixels.learner import PixelLearner
from goalreel.training.pixels.monitor import write_rows
from goalreel.training.pixels.session import Session, interrupts
from goalreel.training.pixels.settings import PipelineSettings
from goalreel.training.pixels.trainer import Trainer
from goalreel.training.shared_memory import child_process


def train(settings: PipelineSettings, saved: Path, code: str = "") -> Session:
    """Train, or resume a training if its checkpoint exists, and return its last session.

    A checkpoint must have the same fingerprint of the program's `code`. Raises GoalreelError if the
    settings are wrong, the checkpoint does not match them, or a signal stopped the training. Other
    errors are raised unchanged after the training is saved.
    """
    game = asdict(game_settings(settings.game, settings.frame_skip))
    child_process.keep_freed_memory()
    with interrupts() as asked:
        actions = actions_of(settings.interpreter, game)
        trainer = Trainer(settings, PixelLearner(settings, actions, settings.seed))
        identity = checkpoint.identity_of(game, settings, actions, code)
        sums, rows = {}, []
        if saved.exists():
            progress = checkpoint.resume(saved, identity, trainer.learner, trainer.replay)
            trainer.restore(progress["trainer"])
            sums, rows = progress["sums"], progress["rows"]
            say(f"{saved}: resumed after {trainer.steps:,} decisions")
        session = Session(settings, game, trainer, sums, rows, table_of(saved))
        try:
            session.run(asked)
            if asked:
                raise Stopped(f"Stopped by {asked[0]}.")
        except Exception as error:  # such as of CUDA or memory
            outcome = _save(saved, identity, session)
            if isinstance(error, GoalreelError):
                raise type(error)(f"{error}{outcome}") from None
            say(f"The training failed.{outcome}")
            raise
        return session


def table_of(saved: Path) -> Path:
    """Return the path of the monitor's table of an unfinished training."""
    return saved.with_suffix(".csv")


def _save(saved: Path, identity: Mapping, session: Session) -> str:
    """Save a stopped training with any steps, and return the last line of the message."""
    trainer = session.trainer
    if not trainer.steps:
        return ""
    done = f"{trainer.steps:,} of {session.settings.total_timesteps:,} decisions"
    progress = {"trainer": trainer.progress(), "sums": session.sums, "rows": session.rows}
    try:
        checkpoint.write_checkpoint(saved, identity, trainer.learner, trainer.replay, progress)
    except Exception as error:  # the error that stopped the training matters more
        return f"\n  Not saved after {done}. {saved}: {error}"
    return f"\n  Saved after {done} in {saved}. Run the same command to resume."


def metrics_of(session: Session) -> dict:
    """Return the values of metrics.json.

    `blocked` and `learning` are shares of the time, of a collector and of the learner.
    `cpu_seconds` is of all processes. `best` is the checkpoint of the best evaluation.
    """
    trainer, sums, seconds = session.trainer, session.sums, session.sums["seconds"]
    return {
        **{"decisions": trainer.steps, "seconds": seconds},
        **{"cpu_seconds": sums["cpu_seconds"], "decisions_per_s": trainer.steps / seconds},
        **{"updates": trainer.learner.updates, "samples": trainer.samples, "games": trainer.games},
        "sessions": sums["sessions"],
        "blocked": sums["blocked"] / seconds / session.settings.collectors,
        **{"learning": sums["learning"] / seconds, "best": trainer.best.checkpoint_step},
        "evaluations": [asdict(evaluation) for evaluation in trainer.evaluations],
    }


def write_results(policy: Path, table: Path, metrics: Path, session: Session, spec: Spec) -> str:
    """Write policy, table and metrics, and return a summary in a line."""
    trainer, figures, game = session.trainer, metrics_of(session), session.game
    means = {evaluation.checkpoint_step: evaluation.mean for evaluation in trainer.evaluations}
    kept, weights = zip(*sorted(trainer.kept.items()), strict=True)
    values = kept, tuple(map(means.get, kept)), weights, spec
    own = {"game": game, "actions": len(weights[0]["values.bias"]), "stack": session.settings.stack}
    write_checkpoints(policy, PixelCheckpoints(*values, **own))
    write_rows(table, session.rows)
    write_text(metrics, spec.extended(metrics=figures).text + "\n")
    best = trainer.best
    return (
        f"{game['game']}: {figures['decisions']:,} decisions in {figures['seconds']:,.1f} s, "
        f"{figures['decisions_per_s']:,.0f}/s; {figures['updates']:,} updates from "
        f"{trainer.samples:,} samples; best after {best.checkpoint_step:,} decisions and "
        f"{best.seconds:,.0f} s: mean return {best.mean:.1f} of {len(best.returns)} greedy games"
    )
