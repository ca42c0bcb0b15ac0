"""The progress of a training: a line every few seconds, a table, a plot, TensorBoard's events.

The columns have Stable-Baselines3's names. All counts are of all processes and sessions.
"""

import csv
import importlib.util
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from goalreel.cli import say
from goalreel.files.atomic import replacing

EVERY = 5.0  # seconds
_ROLLOUT = ("ep_rew_mean", "ep_len_mean", "distance_mean", "success_rate", "exploration_rate")
_TRAIN = ("learning_rate", "n_updates", "loss", "td_error", "policy_gradient_loss", "value_loss")
COLUMNS = (
    *(f"time/{name}" for name in ("total_timesteps", "time_elapsed", "cpu_seconds", "fps")),
    *(f"rollout/{name}" for name in _ROLLOUT),
    *(f"eval/{name}" for name in ("ep_rew_mean", "ep_len_mean", "distance_mean", "success_rate")),
    *(f"train/{name}" for name in (*_TRAIN, "entropy_loss", "approx_kl")),
    *("starts/all_segments", "starts/worst_segment"),
)
_LINE = {
    "rollout/ep_rew_mean": "return",
    "rollout/distance_mean": "distance",
    "rollout/success_rate": "successes",
    "starts/all_segments": "all segments",
    "rollout/exploration_rate": "epsilon",
    "train/loss": "loss",
    "train/entropy_loss": "negative entropy",
    "eval/ep_rew_mean": "evaluation",
    "eval/success_rate": "successes in it",
}
_PANELS = {
    "return": (("rollout/ep_rew_mean", "latest games"), ("eval/ep_rew_mean", "greedy")),
    "successes": (("rollout/success_rate", "latest games"), ("eval/success_rate", "greedy")),
    "decisions per game": (("rollout/ep_len_mean", "latest games"), ("eval/ep_len_mean", "greedy")),
    "loss": (("train/loss", "loss"),),
    "decisions per second": (("time/fps", "played"),),
}


class Progress:
    """Writes each row to the table at once, so that it can be read during the training."""

    def __init__(self, rows: list[list], total: int, table: Path):
        """Write the rows so far of a resumed training, to which `take` adds."""
        # `total` is the number of all decisions. Events for TensorBoard go to the table's folder.
        self.rows, self._table, self._total, self._writer = rows, table, total, None
        if importlib.util.find_spec("tensorboard"):
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(table.parent))
        write_rows(table, rows)

    def take(self, figures: Mapping[str, float]) -> None:
        """Print and write a row; missing columns are empty."""
        row = {name: _rounded(figures.get(name, math.nan)) for name in COLUMNS}
        self.rows.append(list(row.values()))
        write_rows(self._table, self.rows)
        step = row["time/total_timesteps"]
        if self._writer:
            for name, value in row.items():
                if value is not None:
                    self._writer.add_scalar(name, value, step)
            self._writer.flush()
        known = (f"{label} {row[n]:.3g}" for n, label in _LINE.items() if row[n] is not None)
        start = f"{row['time/time_elapsed']:,.0f} s: {step:,} of {self._total:,} decisions"
        say(", ".join([start, f"{row['time/fps'] or 0:,.0f}/s", *known]))


def write_rows(path: Path, rows: Sequence[Sequence]) -> None:
    """Write the table as CSV."""
    with replacing(path) as temporary, temporary.open("w", newline="") as stream:
        # None is an empty cell.
        csv.writer(stream, lineterminator="\n").writerows([COLUMNS, *rows])


def _rounded(value: float) -> float | int | None:
    if isinstance(value, int):
        return value
    return None if math.isnan(value) else float(f"{value:.6g}")


def plot_progress(path: Path, rows: Sequence[Sequence], env: str, spec: str) -> None:
    """Plot the rows of a training's table as SVG."""
    import numpy as np
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter

    from goalreel.files.svg_plot import FILL, MARK, Caption, plot_style, save

    table = dict(zip(COLUMNS, np.array(rows, float).reshape(-1, len(COLUMNS)).T, strict=True))
    is_known = np.isfinite(table["rollout/success_rate"]).any()
    titles = [t for t in _PANELS if t != ("decisions per game" if is_known else "successes")]
    with plot_style():
        figure = Figure(figsize=(8, 5.2))
        panels = figure.subplots(2, 2, sharex=True)
        for axes, title in zip(panels.flat, titles, strict=True):
            lines = zip(_PANELS[title], ("-", ".--"), (FILL, MARK), strict=False)
            for (name, label), line, ink in lines:
                known = np.isfinite(table[name])
                steps = table["time/total_timesteps"][known]
                axes.plot(steps, table[name][known], line, color=ink, label=label)
            axes.set(ylabel=title)
            axes.legend(frameon=False, fontsize=8)
        for axes in panels[1]:
            axes.set(xlabel="decisions")
            axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        text = f"Learning {env}: {', '.join(titles)}, over the decisions."
        save(figure, path, Caption("Training", text, spec))
