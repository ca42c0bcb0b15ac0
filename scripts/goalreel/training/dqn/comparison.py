"""The comparison of variants: a table of medians against the baseline's, and learning curves.

The band of a curve is that of a stratified bootstrap, which R. Agarwal et al., "Deep Reinforcement
Learning at the Edge of the Statistical Precipice" (2021), section 4.1, recommend for few runs: of
each stratum, here a variant, as many runs are drawn with replacement as it has, a whole run at a
time, and the means of the draws give percentiles.
"""

import csv
import io
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from goalreel.training.dqn.metrics import SOLVED, Metrics

HEADER = ("Step", "FPS", "ΔFPS", "Time, mins", "ΔTime", "Solved", "Mean return")
TITLES = {
    "baseline": "Baseline",
    "without_no_grad": "Without torch.no_grad()",
    "environments_3": "3 environments",
    "environments_16": "16 environments",
    "parallel": "Parallel version",
    "wrappers_environments": "Wrappers + 16 environments",
    "wrappers_parallel": "Wrappers + parallel",
    "fast": "Everything that helped",
}
DRAWS, LEVEL = 2_000, 0.95  # of the bootstrap
_RUN = ("variant", "seed", "deterministic", "frames", "seconds", "fps", "solved_frames",
        "solved_seconds", "best", "last")  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A variant's trainings, each figure the median over its seeds."""

    variant: str
    runs: int  # trainings
    fps: float
    faster: float | None  # change of fps against the baseline, None without one
    minutes: float | None  # until solved; None if half of the trainings or more never were
    longer: float | None  # change of minutes against the baseline
    solved: int  # trainings with an evaluation of SOLVED or better
    last: float  # mean return at the end
    deterministic: bool  # the same seed gives the same weights again

    def cells(self) -> tuple[str, ...]:
        """Return the cells below HEADER."""
        return (
            *(TITLES[self.variant], f"{self.fps:,.0f}", _percent(self.faster)),
            "not solved" if self.minutes is None else f"{self.minutes:.2f}",
            *(_percent(self.longer), f"{self.solved} of {self.runs}", f"{self.last:.1f}"),
        )


@dataclass(frozen=True)
class Curve:
    """A variant's learning curve, (evaluations,) arrays."""

    variant: str
    seeds: int  # trainings
    frames: np.ndarray  # of training at each evaluation
    minutes: np.ndarray  # of training, the median
    mean: np.ndarray  # of the mean returns
    low: np.ndarray  # the band around it
    high: np.ndarray


def rows_of(trainings: Iterable[Metrics]) -> list[Row]:
    """Return a row for each variant, in the order in which they come first."""
    groups = _by_variant(trainings)
    medians = {variant: _median(group) for variant, group in groups.items()}
    fps, minutes = medians.get("baseline", (None, None))
    rows = []
    for variant, group in groups.items():
        own_fps, own_minutes = medians[variant]
        is_baseline = variant == "baseline"
        rows.append(
            Row(
                *(variant, len(group), own_fps),
                None if is_baseline else _change(own_fps, fps),
                own_minutes,
                None if is_baseline else _change(own_minutes, minutes),
                sum(metrics.solved_seconds is not None for metrics in group),
                statistics.median(metrics.last for metrics in group),
                all(metrics.deterministic for metrics in group),
            )
        )
    return rows


def _by_variant(trainings: Iterable[Metrics]) -> dict[str, list[Metrics]]:
    groups: dict[str, list[Metrics]] = {}
    for metrics in trainings:
        groups.setdefault(metrics.variant, []).append(metrics)
    return groups


def _median(group: Sequence[Metrics]) -> tuple[float, float | None]:
    """Return the median FPS, and the median minutes to solve; never counts as infinitely long."""
    never = float("inf")
    seconds = statistics.median(
        never if metrics.solved_seconds is None else metrics.solved_seconds for metrics in group
    )
    fps = statistics.median(metrics.fps for metrics in group)
    return fps, None if seconds == never else seconds / 60


def _change(value: float | None, baseline: float | None) -> float | None:
    return None if value is None or not baseline else value / baseline - 1


def _percent(change: float | None) -> str:
    return "-" if change is None else f"{change:+.0%}" if abs(change) >= 1 else f"{change:+.1%}"


def as_markdown(rows: Sequence[Row]) -> str:
    """Return the table as Markdown, with an explanation of its columns below it."""
    lines = [HEADER, ["---"] + ["---:"] * (len(HEADER) - 1), *(row.cells() for row in rows)]
    table = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    return f"{table}\n{explained(rows)}\n"


def explained(rows: Sequence[Row]) -> str:
    """Return what the table's columns mean, in a few sentences."""
    runs = sorted({row.runs for row in rows})
    many = f"{runs[0]}" if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    free = ", ".join(TITLES[row.variant] for row in rows if not row.deterministic)
    return (
        f"Each figure is the median of {many} training{'s' if runs[-1] > 1 else ''}. FPS: frames "
        f"of the environment for each second. Time: wall clock up to the first greedy evaluation "
        f"over 100 fixed seeds, every 5,000 frames and outside the clock, with a mean return of "
        f"{SOLVED:.0f} or better; Solved: how many trainings had one. Mean return: of the last "
        f"evaluation."
    ) + (
        f" Not deterministic, since playing and learning go each at its own pace, so that the same "
        f"seed gives other weights and figures each time: {free}."
        if free
        else ""
    )


def as_csv(rows: Sequence[Row]) -> str:
    """Return the table as CSV; a missing figure is an empty cell."""
    return _csv([field.name for field in fields(Row)], (vars(row).values() for row in rows))


def runs_as_csv(trainings: Iterable[Metrics]) -> str:
    """Return a row for each training, as CSV."""
    return _csv(_RUN, ([getattr(metrics, name) for name in _RUN] for metrics in trainings))


def _csv(header: Iterable[str], rows: Iterable[Iterable]) -> str:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(header)
    table.writerows(rows)
    return text.getvalue()


def curves_of(trainings: Iterable[Metrics]) -> list[Curve]:
    """Return each variant's curve, in the order in which they come first."""
    return [_curve(variant, group) for variant, group in _by_variant(trainings).items()]


def _curve(variant: str, group: list[Metrics]) -> Curve:
    count = min(len(metrics.checkpoints) for metrics in group)
    frames, clock, means = (
        np.array([getattr(metrics, name)[:count] for metrics in group])
        for name in ("checkpoints", "clock", "means")
    )
    return Curve(
        *(variant, len(group), frames.mean(axis=0), np.median(clock, axis=0) / 60),
        *(means.mean(axis=0), *band(means)),
    )


def band(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the low and high end of the bootstrap's band for the mean over the first axis.

    The values are (runs, evaluations) float64; the same values give the same band.
    """
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(values), size=(DRAWS, len(values)))
    means = values[drawn].mean(axis=1)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return low, high
