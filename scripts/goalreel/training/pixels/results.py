"""What a training from pixels leaves behind: policy, table and metrics; the plot: monitor_plot."""

import json
from pathlib import Path

from goalreel.files.atomic import replacing
from goalreel.provenance.spec import canonical
from goalreel.training.pixels.monitor import write_rows
from goalreel.training.pixels.policy_file import PixelPolicy, write_policy
from goalreel.training.pixels.training import Trained


def policy_of(trained: Trained, spec: str) -> PixelPolicy:
    """Return the policy to keep."""
    mean, frames, best = trained.best
    return PixelPolicy(
        *(canonical(trained.game), trained.actions, trained.stack),
        *((frames, trained.frames), (mean, trained.mean)),
        *(best, trained.last, spec),
    )


def metrics_of(trained: Trained) -> dict:
    """Return the numbers of a training.

    frames, steps: that were taken into the buffer; played: frames, dropped ones included
    fps: frames for each second; blocked, learning: shares of the time, of a collector and of the
    learner; best, last: mean return of the latest games when it was the highest and in the end,
    None where no game or too few had ended
    """
    sums, seconds = trained.sums, max(trained.sums.seconds, 1e-9)
    collectors = max(trained.collectors, 1)
    return {
        **{"frames": trained.frames, "steps": sums.steps, "played": sums.played},
        **{"seconds": sums.seconds, "fps": trained.frames / seconds},
        **{"updates": trained.updates, "samples": trained.samples},
        "samples_per_s": trained.samples / seconds,
        **{"games": trained.games, "drops": sums.drops, "restarts": sums.restarts},
        **{"blocked": sums.blocked / seconds / collectors, "learning": sums.learning / seconds},
        **{"best": _known(trained.best[0]), "best_frames": trained.best[1]},
        **{"last": _known(trained.mean), "sessions": sums.sessions},
    }


def write_results(policy: Path, table: Path, metrics: Path, trained: Trained, spec: str) -> str:
    """Write all files but the plot; return a line of what came of it."""
    write_policy(policy, policy_of(trained, spec))
    write_rows(table, trained.rows)
    told = metrics_of(trained)
    with replacing(metrics) as temporary:
        text = canonical({**json.loads(spec), "metrics": told})
        Path(temporary).write_text(text + "\n", encoding="utf-8")
    best = "none" if told["best"] is None else f"{told['best']:.1f}"
    return (
        f"{trained.game['game']}: {trained.frames:,} frames in {told['seconds']:,.1f} s, "
        f"{told['fps']:,.0f} FPS; {trained.updates:,} updates from {trained.samples:,} samples; "
        f"best mean return {best}"
    )


def _known(value: float) -> float | None:
    return None if value != value else value
