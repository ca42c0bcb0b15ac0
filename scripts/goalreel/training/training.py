"""Train a policy: start or resume a training, save it if it stops, and write its results."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from goalreel.errors import Stopped
from goalreel.files.atomic import write_text
from goalreel.policies.network_file import Checkpoints, write_checkpoints
from goalreel.policies.torch_network import is_own
from goalreel.provenance.checksums import with_digests
from goalreel.provenance.spec import Spec
from goalreel.training.processes import Group, interrupts, run_group
from goalreel.training.progress import write_rows
from goalreel.training.session import Evaluation, Session


def train(config: Mapping, saved: Path, code: Mapping[str, str] = {}) -> Session:  # noqa: B006
    """Train, or resume a training if its checkpoint exists, and return its last session.

    `config` has the options of the environment, and `train` without `null`. The checkpoint `saved`
    must have the same `code`, fingerprints of the program and the user's files by name. Raises
    GoalreelError if the options are wrong or not the checkpoint's, a process ended, or a signal
    stopped the training.
    """
    with interrupts() as asked:
        return run_group(config["train"]["processes"], _train, dict(config), saved, code, asked)


def _train(group: Group, config: Mapping, saved: Path, code: Mapping, asked: list) -> Session:
    """Train as one process of a group."""
    torch.set_num_threads(config["train"]["threads"])  # also on more or fewer cores
    session = Session(group, config, saved, code)
    if not session.run(asked):
        raise Stopped(f"Stopped by {next(iter(asked), 'a signal')}.{session.save()}")
    return session


def metrics_of(session: Session) -> dict:
    """Return the values of metrics.json. `best` is the checkpoint of the best evaluation."""
    record = session.record
    names = ("decisions", "seconds", "cpu_seconds", "updates", "sessions")
    return {
        **{name: getattr(record, name) for name in names},
        "decisions_per_s": record.decisions / record.seconds,
        "best": record.best.checkpoint_step,
        "evaluations": [
            {
                **{"decisions": evaluation.checkpoint_step, "seconds": evaluation.seconds},
                "returns": [game.return_ for game in evaluation.games],
                "successes": _known(evaluation, "success"),
                "distances": _known(evaluation, "distance"),
            }
            for evaluation in record.evaluations
        ],
    }


def _known(evaluation: Evaluation, name: str) -> list[float] | None:
    """Return an attribute of each game, None if the games do not tell it."""
    values = [getattr(game, name) for game in evaluation.games]
    return None if np.isnan(values).any() else values


def write_results(policy: Path, table: Path, metrics: Path, session: Session, spec: Spec) -> str:
    """Write policy, table and metrics, and return a summary in a line."""
    task, record, network = session.task, session.record, session.settings.network
    means = {e.checkpoint_step: e.mean("return_") for e in record.evaluations}
    steps, weights = zip(*sorted(record.kept.items()), strict=True)
    settings = {
        **{"env": task.config["env"], "actions": task.num_actions, "obs_shape": [*task.shape]},
        **{"frame_skip": session.settings.frame_skip, **task.preprocessing},
        "module": network if is_own(network) else None,
        "strides": None if is_own(network) else session.network.strides,
        "bounds": [task.low.tolist(), task.high.tolist()] if is_own(network) else None,
    }
    kept_means = tuple(means[step] for step in steps)
    write_checkpoints(policy, Checkpoints(steps, kept_means, weights, settings, spec))
    write_rows(table, record.rows)
    write_text(metrics, with_digests(spec.extended(metrics=metrics_of(session)), [table]))
    best = record.best
    rate, share = record.decisions / record.seconds, best.mean("success")
    successes = "" if np.isnan(share) else f", {share:.0%} successes"
    return (
        f"{settings['env']}: {record.decisions:,} decisions in {record.seconds:,.1f} s, "
        f"{rate:,.0f}/s; best after {best.checkpoint_step:,} decisions and {best.seconds:,.0f} s: "
        f"mean return {best.mean('return_'):.1f} of {len(best.games)} greedy games{successes}"
    )
