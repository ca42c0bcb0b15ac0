"""The comparison of variants: a table of medians, with changes against the baseline."""

import math
from collections.abc import Iterable

import pandas as pd

from goalreel.training.dqn.metrics import SOLVED, Metrics
from goalreel.training.dqn.settings import Settings

HEADER = ("Step", "decisions/s", "Δ", "frames/s", "CPU, s", "Time, s", "ΔTime", "Solved",
          "Mean return")  # fmt: skip
TITLES = {
    "baseline": "Baseline",
    "without_no_grad": "Without torch.no_grad()",
    "environments_3": "3 environments",
    "wrappers_environments": "Wrappers + 3 environments",
    "fast": "Wrappers + 16 environments, batch x 4",
}
_RUN = ["variant", "seed", "decisions", "frames", "seconds", "cpu_seconds", "load", "cores",
        "loaded", "solved", "last"]  # fmt: skip
_ROW = ["variant", "runs", "rate", "faster", "frames_rate", "cpu_seconds", "seconds", "longer",
        "solved", "last", "loaded"]  # fmt: skip


def table_of_runs(trainings: Iterable[Metrics]) -> pd.DataFrame:
    """Return a table with a row for each training."""
    return pd.DataFrame([[getattr(run, name) for name in _RUN] for run in trainings], columns=_RUN)


def table_of_variants(runs: pd.DataFrame) -> pd.DataFrame:
    """Return a table with a row for each variant, in the order of their first runs.

    `rate` (decisions per second), `frames_rate` (frames per second) and `seconds` (until solved)
    are medians over the seeds. `seconds` is missing if at least half of the trainings did not solve
    the environment. `faster` and `longer` are the changes of `rate` and `seconds` against the
    baseline. `solved` and `loaded` count trainings.
    """
    runs = runs.assign(
        rate=runs.decisions / runs.seconds,
        frames_rate=runs.frames / runs.seconds,
        seconds=runs.seconds.where(runs.solved, math.inf),  # unsolved
    )
    groups = runs.groupby("variant", sort=False)
    rows = groups[["rate", "frames_rate", "cpu_seconds", "seconds", "last"]].median()
    rows["runs"], rows["seconds"] = groups.size(), rows.seconds.replace(math.inf, math.nan)
    rows[["solved", "loaded"]] = groups[["solved", "loaded"]].sum()
    for change, figure in (("faster", "rate"), ("longer", "seconds")):
        changes = rows[figure] / rows[figure].get("baseline", math.nan) - 1
        rows[change] = changes.where(rows.index != "baseline")
    return rows.reset_index()[_ROW]


def cells_of(row) -> tuple[str, ...]:
    """Return the cells of a row of `table_of_variants`, for the columns of HEADER."""
    seconds = "not solved" if math.isnan(row.seconds) else f"{row.seconds:,.1f}"
    return (
        TITLES[row.variant] + (" \\*" if row.loaded else ""),
        *(f"{row.rate:,.0f}", _percent(row.faster), f"{row.frames_rate:,.0f}"),
        *(f"{row.cpu_seconds:,.1f}", seconds, _percent(row.longer)),
        *(f"{row.solved} of {row.runs}", f"{row.last:.1f}"),
    )


def _percent(change: float) -> str:
    return "-" if math.isnan(change) else f"{change:+.0%}" if abs(change) >= 1 else f"{change:+.1%}"


def as_markdown(rows: pd.DataFrame) -> str:
    """Return the variants as a Markdown table, with an explanation of the columns."""
    lines = [HEADER, ["---"] + ["---:"] * (len(HEADER) - 1), *map(cells_of, rows.itertuples())]
    table = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    return f"{table}\n{_explained(rows)}\n"


def _explained(rows: pd.DataFrame) -> str:
    """Return an explanation of the columns."""
    loaded, runs, seeds = rows.loaded.sum(), rows.runs.sum(), int(rows.runs[0])
    parts = [
        f"Medians of {seeds} training{'s' * (seeds > 1)}. A decision is a choice of action, which "
        f"lasts up to {Settings.frame_skip} frames of the environment. CPU: of all processes of a "
        f"training; Time: its wall clock. A training ends when it is solved, by a greedy "
        f"evaluation over 100 fixed seeds, every 500 decisions and outside both times, with a mean "
        f"return of {SOLVED:.0f} or better. Mean return: of the last evaluation."
    ]
    if loaded:
        parts.append(
            f"\\* In {loaded} of the {runs} trainings the machine was loaded, so that times are "
            f"too long: the load was above the cores, or the processes computed for less than 90% "
            f"of the time."
        )
    return " ".join(parts)
