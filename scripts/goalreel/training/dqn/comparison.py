"""The comparison of variants: a table of medians against the baseline's."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields

from goalreel.training.dqn.metrics import SOLVED, Metrics, csv_of
from goalreel.training.dqn.settings import VARIANTS, Settings

HEADER = ("Step", "decisions/s", "Δ", "frames/s", "CPU, s", "Time, s", "ΔTime", "Solved",
          "Mean return")  # fmt: skip
TITLES = {
    "baseline": "Baseline",
    "without_no_grad": "Without torch.no_grad()",
    "environments_3": "3 environments",
    "parallel": "Parallel version",
    "wrappers_environments": "Wrappers + 3 environments",
    "wrappers_parallel": "Wrappers + parallel",
    "fast": "Wrappers + 16 environments, batch x 4",
}
_RUN = ("variant", "seed", "decisions", "frames", "seconds", "cpu_seconds", "load", "cores",
        "loaded", "solved", "last")  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A variant's trainings, each figure the median over its seeds."""

    variant: str
    runs: int  # trainings
    rate: float  # decisions per second
    faster: float | None  # change of the rate against the baseline, None without one
    frames_rate: float  # frames per second
    cpu_seconds: float
    seconds: float | None  # until solved; None if half of the trainings or more never were
    longer: float | None  # change of seconds against the baseline
    solved: int  # trainings that solved the environment
    last: float  # mean return at the end
    loaded: int  # trainings in which other work slowed the machine down

    def cells(self) -> tuple[str, ...]:
        """Return the cells below HEADER."""
        return (
            TITLES[self.variant] + (" \\*" if self.loaded else ""),
            *(f"{self.rate:,.0f}", _percent(self.faster), f"{self.frames_rate:,.0f}"),
            *(f"{self.cpu_seconds:,.1f}", seconds_in_words(self.seconds), _percent(self.longer)),
            *(f"{self.solved} of {self.runs}", f"{self.last:.1f}"),
        )


def rows_of(trainings: Iterable[Metrics]) -> list[Row]:
    """Return a row for each variant, in the order in which they come first."""
    groups = by_variant(trainings)
    base = groups.get("baseline")
    rows = []
    for variant, group in groups.items():
        others = None if variant == "baseline" else base
        rows.append(
            Row(
                *(variant, len(group), _rate(group), _change(_rate, group, others)),
                statistics.median(one.frames / one.seconds for one in group),
                statistics.median(one.cpu_seconds for one in group),
                *(_seconds(group), _change(_seconds, group, others)),
                sum(one.solved for one in group),
                statistics.median(one.last for one in group),
                sum(one.loaded for one in group),
            )
        )
    return rows


def by_variant(trainings: Iterable[Metrics]) -> dict[str, list[Metrics]]:
    """Return each variant's trainings, in the order in which they come first."""
    groups: dict[str, list[Metrics]] = {}
    for metrics in trainings:
        groups.setdefault(metrics.variant, []).append(metrics)
    return groups


def _rate(group: Sequence[Metrics]) -> float:
    return statistics.median(one.rate for one in group)


def _seconds(group: Sequence[Metrics]) -> float | None:
    """Return the median seconds to solve; never counts as infinitely long, None stands for it."""
    seconds = statistics.median(one.seconds if one.solved else math.inf for one in group)
    return None if seconds == math.inf else seconds


def _change(figure: Callable, group: Sequence[Metrics], base: Sequence[Metrics] | None):
    value, others = figure(group), base and figure(base)
    return value / others - 1 if value and others else None


def _percent(change: float | None) -> str:
    return "-" if change is None else f"{change:+.0%}" if abs(change) >= 1 else f"{change:+.1%}"


def seconds_in_words(seconds: float | None) -> str:
    """Return the seconds to solve as tables and plots show them."""
    return "not solved" if seconds is None else f"{seconds:,.1f}"


def as_markdown(rows: Sequence[Row]) -> str:
    """Return the table as Markdown, with an explanation of its columns below it."""
    lines = [HEADER, ["---"] + ["---:"] * (len(HEADER) - 1), *(row.cells() for row in rows)]
    table = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    return f"{table}\n{explained(rows)}\n"


def explained(rows: Sequence[Row]) -> str:
    """Return what the table's columns mean, in a few sentences."""
    free = ", ".join(TITLES[row.variant] for row in rows if not VARIANTS[row.variant].deterministic)
    loaded, runs = sum(row.loaded for row in rows), sum(row.runs for row in rows)
    plural = "s" if rows[0].runs > 1 else ""
    parts = [
        f"Medians of {rows[0].runs} training{plural}. A decision is a choice of action, which "
        f"lasts up to {Settings.frame_skip} frames of the environment. CPU: of all processes of a "
        f"training; Time: its wall clock. A training ends when it is solved, by a greedy "
        f"evaluation over 100 fixed seeds, every 500 decisions and outside both times, with a mean "
        f"return of {SOLVED:.0f} or better. Mean return: of the last evaluation."
    ]
    if free:
        parts.append(
            f"Not deterministic, since playing and learning go each at its own pace, so that the "
            f"same seed gives other weights and figures each time: {free}."
        )
    if loaded:
        parts.append(
            f"\\* In {loaded} of the {runs} trainings the machine was loaded, so that times are "
            f"too long: the load was above the cores, or the processes computed for less than 90% "
            f"of the time."
        )
    return " ".join(parts)


def as_csv(rows: Sequence[Row]) -> str:
    """Return the table as CSV; a missing figure is an empty cell."""
    return csv_of([field.name for field in fields(Row)], (vars(row).values() for row in rows))


def runs_as_csv(trainings: Iterable[Metrics]) -> str:
    """Return a row for each training, as CSV."""
    return csv_of(_RUN, ([getattr(metrics, name) for name in _RUN] for metrics in trainings))
