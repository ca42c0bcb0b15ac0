"""The ablation table: what each variant's trainings came to, as medians against the baseline's."""

import csv
import io
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from goalreel.errors import GoalreelError, Unusable
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
_RUN = ("variant", "seed", "deterministic", "frames", "seconds", "fps", "solved_frames",
        "solved_seconds", "best", "last")  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A variant's trainings, each figure the median over its seeds.

    minutes: to the first evaluation of -110 or better, None if half of the trainings or more had
    none; faster, longer: changes of fps and minutes against the baseline, None without one
    solved: how many of the `runs` trainings had such an evaluation; last: mean return at the end
    deterministic: whether a training from the same seed gives the same weights again
    """

    variant: str
    runs: int
    fps: float
    faster: float | None
    minutes: float | None
    longer: float | None
    solved: int
    last: float
    deterministic: bool

    def cells(self) -> tuple[str, ...]:
        """Return the cells below HEADER."""
        return (
            *(title_of(self.variant), f"{self.fps:,.0f}", _percent(self.faster)),
            "not solved" if self.minutes is None else f"{self.minutes:.2f}",
            *(_percent(self.longer), f"{self.solved} of {self.runs}", f"{self.last:.1f}"),
        )


def title_of(variant: str) -> str:
    """Return a variant's name as tables and plots show it."""
    return TITLES.get(variant, variant)


def rows_of(trainings: Iterable[Metrics]) -> list[Row]:
    """Return a row for each variant, in the order in which they come first."""
    groups: dict[str, list[Metrics]] = {}
    for metrics in trainings:
        groups.setdefault(metrics.variant, []).append(metrics)
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
    """Return the table as Markdown, with what its columns mean below it."""
    lines = [HEADER, ["---"] + ["---:"] * (len(HEADER) - 1), *(row.cells() for row in rows)]
    table = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    return f"{table}\n{explained(rows)}\n"


def explained(rows: Sequence[Row]) -> str:
    """Return what the table's columns mean, in a few sentences."""
    runs = sorted({row.runs for row in rows})
    many = f"{runs[0]}" if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    return (
        f"Each figure is the median of {many} training{'s' if runs[-1] > 1 else ''}. FPS: frames "
        f"of the environment for each second. Time: wall clock up to the first greedy evaluation "
        f"over 100 fixed seeds, every 5,000 frames and outside the clock, with a mean return of "
        f"{SOLVED:.0f} or better; Solved: how many trainings had one. Mean return: of the last "
        f"evaluation.{_undetermined(rows)}"
    )


def _undetermined(rows: Sequence[Row]) -> str:
    """Return a sentence on the variants that are not deterministic, if there are any."""
    titles = [title_of(row.variant) for row in rows if not row.deterministic]
    return (
        f" Not deterministic, since playing and learning go each at its own pace, so that the same "
        f"seed gives other weights and figures each time: {', '.join(titles)}."
        if titles
        else ""
    )


def as_csv(rows: Sequence[Row]) -> str:
    """Return the table as CSV, a figure that is not there as an empty cell."""
    return _csv([field.name for field in fields(Row)], (vars(row).values() for row in rows))


def read_rows(path: Path) -> list[Row]:
    """Read such a CSV table. Raises GoalreelError if there is none, Unusable if it is another."""
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            return [Row(**_values(row)) for row in csv.DictReader(stream)]
    except FileNotFoundError:
        raise GoalreelError(f"{path}: no such file; run snakemake to make it") from None
    except (ValueError, KeyError, TypeError) as error:
        raise Unusable(path, f"it is no table of trainings ({error})") from None


def _values(row: Mapping[str, str]) -> dict:
    truth = {"True": True, "False": False}.__getitem__
    kinds = {"variant": str, "runs": int, "solved": int, "deterministic": truth}
    return {
        name: None if text == "" else kinds.get(name, float)(text) for name, text in row.items()
    }


def runs_as_csv(trainings: Iterable[Metrics]) -> str:
    """Return a row for each training, as CSV."""
    return _csv(_RUN, ([getattr(metrics, name) for name in _RUN] for metrics in trainings))


def _csv(header: Iterable[str], rows: Iterable[Iterable]) -> str:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(header)
    table.writerows(rows)
    return text.getvalue()
