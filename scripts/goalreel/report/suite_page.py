"""Write the page of a suite: its runs in a matrix, their differences in pairs, and their films.

The page is a single file, which opens from disk and loads only images and films of the runs. It is
drawn from the values of summary.json.
"""

import base64
import hashlib
import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from goalreel.cli import read_failure
from goalreel.errors import pluralize
from goalreel.files.atomic import write_text
from goalreel.provenance.spec import Spec
from goalreel.report.reach_rate import read_table
from goalreel.report.statistics import (
    Interval,
    PairedDifference,
    format_decimals,
    paired_difference,
    trainings_difference,
    trainings_interval,
)

_TEMPLATES = Path(__file__).parent / "templates"
_LARGE = 40  # runs above which cells are small and rows folded
_MOST_PAIRED = 6  # columns up to which a row compares all pairs, instead of each with the best
_FILES = {"report": "report/index.html", "film": "film.mp4"}
_FILES |= {"poster": "stills/poster.png", "preview": "stills/preview.webp"}
_SUCCESS_BOUNDS = ("success_low", "success_high")


@dataclass(frozen=True)
class SuiteRun:
    """A run of a suite."""

    name: str  # its folder in the results folder
    row: str  # its environment
    column: str  # its policy, or the steps of its checkpoint
    # Several runs of one row and column are trainings from different seeds.
    training_seed: str | None = None


@dataclass
class _Cell:
    """The runs of a row and a column, with intervals over its episodes or its trainings."""

    runs: list[dict]  # as in suite.csv
    means: list[float]  # of the finished runs
    returns: pd.Series | None  # of a single finished run, by seed
    mean: Interval | None
    success: Interval | None
    mark: str = ""  # the result of the comparison with the row's best


def write_suite(folder: Path, runs: Sequence[SuiteRun], is_checkpoints: bool, spec: Spec) -> str:
    """Write index.html, suite.csv and summary.json of a suite, also of one whose runs failed.

    Args:
        folder: the results folder, which holds the folders of the runs.
        runs: the runs. Rows and columns have the order in which they first appear.
        is_checkpoints: whether the columns are numbers of training steps.
        spec: of the stage.

    Returns:
        A line for the log.
    """
    grouped: dict[str, dict[str, list[SuiteRun]]] = {}
    for run in runs:
        grouped.setdefault(run.row, {}).setdefault(run.column, []).append(run)
    columns = sorted({run.column: None for run in runs}, key=int if is_checkpoints else lambda _: 0)
    names = {c: f"{int(c):,} steps" if is_checkpoints else c for c in columns}
    rows = [
        _row(folder, label, {c: _cell(folder, group[c]) for c in columns if c in group}, names)
        for label, group in grouped.items()
    ]
    cells = [cell for row in rows for cell in row["cells"].values()]
    records = [run | {"mark": cell.mark} for cell in cells for run in cell.runs]
    text = pd.DataFrame(records).drop(columns=["files"]).to_csv(index=False, lineterminator="\n")
    write_text(folder / "suite.csv", text)
    summary = {
        "interval": "trainings" if any(len(cell.runs) > 1 for cell in cells) else "episodes",
        "runs": records,
        "pairs": [pair for row in rows for pair in row["pairs"]],
        "spec": spec.value,
    }
    text = json.dumps(summary, indent=1, ensure_ascii=False)
    write_text(folder / "summary.json", f"{text}\n")
    unfinished = [run for run in records if run["state"] != "finished"]
    page = _page(rows, names, is_checkpoints, summary, unfinished)
    write_text(folder / "index.html", page)
    shown = [f"{len(unfinished):,} without results"] if unfinished else []
    return ", ".join([pluralize(len(runs), "run"), *shown])


def _cell(folder: Path, runs: Sequence[SuiteRun]) -> _Cell:
    read = [_read(folder, run) for run in runs]
    records, returns = [record for record, _ in read], [found for _, found in read]
    done = [record for record in records if record["state"] == "finished"]
    over_trainings = len(runs) > 1

    def estimate(name: str, low: str, high: str) -> Interval | None:
        found = [record for record in done if record[name] is not None]
        if not over_trainings or not found:
            return _interval(*(found[0][key] for key in (name, low, high))) if found else None
        return trainings_interval([record[name] for record in found])

    mean, success = estimate("mean", "low", "high"), estimate("success", *_SUCCESS_BOUNDS)
    if success:
        success = Interval(success.value, max(success.low, 0), min(success.high, 1))
    return _Cell(records, [record["mean"] for record in done], returns[0], mean, success)


def _read(folder: Path, run: SuiteRun) -> tuple[dict, pd.Series | None]:
    """Return a run's row of suite.csv, and its returns by seed if it has finished."""
    path = folder / run.name
    file = path / "summary.json"
    summary = json.loads(file.read_bytes()) if file.is_file() else {}
    since = file.stat().st_mtime if summary else 0.0
    dated = [(log.stat().st_mtime, log) for log in path.glob("logs/**/*.log")]
    logs = [log for time, log in sorted(dated, reverse=True) if time > since]
    failed = next(((found, log) for log in logs if (found := read_failure(log))), None)
    error = failed[0]["error"].splitlines()[0] if failed else None
    files = {key: path / name for key, name in _FILES.items()} | {"log": failed and failed[1]}
    returned, success = (summary.get(part) or {} for part in ("return", "success"))
    record = {
        **{"run": run.name, "row": run.row, "column": run.column},
        "training_seed": run.training_seed,
        "state": "failed" if failed else "finished" if summary else "not finished",
        "error": error,
        "episodes": summary.get("episodes", 0),
        **{name: returned.get(name) for name in ("mean", "low", "high", "std")},
        "success": success.get("share"),
        **dict(zip(_SUCCESS_BOUNDS, map(success.get, ("low", "high")), strict=True)),
        "files": {key: _address(folder, file) for key, file in files.items()},
    }
    if record["state"] != "finished":
        return record, None
    # The first table of a film of reaches lacks the failed attempts.
    name = "attempts.csv" if summary["unit"] == "reach" else "episodes.csv"
    table = read_table(path / name, ("seed", "return")).drop_duplicates("seed")
    return record, table[table["seed"] >= 0].set_index("seed")["return"]


def _address(folder: Path, file: Path | None) -> str | None:
    """Return the address of a file from the page, None if there is none."""
    return file.relative_to(folder).as_posix() if file and file.is_file() else None


def _row(folder: Path, label: str, cells: dict[str, _Cell], names: Mapping) -> dict:
    """Return a row: its cells with their marks, the pairs, and the film of the deciding seeds."""
    means = {column: cell.mean.value for column, cell in cells.items() if cell.mean}
    ranked = sorted(means, key=means.get, reverse=True)
    found = {
        (a, b): _difference(cells[b], cells[a])
        for a, b in itertools.combinations(ranked, 2)
        if len(ranked) <= _MOST_PAIRED or a == ranked[0]
    }
    of_best = {b: difference for (a, b), difference in found.items() if a == ranked[0]}
    worse = {b for b, difference in of_best.items() if difference and difference.mean.low > 0}
    ties = {b for b, difference in of_best.items() if difference} - worse
    for column in of_best.keys() - worse - ties:
        cells[column].mark = "not compared"
    for column in (ranked[0], *ties) if worse else ():
        cells[column].mark = "among the best" if ties else "best"
    bounds = [b for cell in cells.values() if cell.mean for b in vars(cell.mean).values()]
    compared = folder / "compare" / re.sub(r"[^\w.+-]+", "-", label).strip("-.")
    return {
        "label": label,
        "cells": cells,
        "pairs": [
            {"row": label, "a": a, "b": b} | _values(difference, names[a], names[b])
            for (a, b), difference in found.items()
        ],
        "is_tie": bool(ties and not worse),
        "span": (np.nanmin(bounds), np.nanmax(bounds)) if bounds else None,
        "film": _address(folder, compared / "compare.mp4"),
    }


def _difference(a: _Cell, b: _Cell) -> PairedDifference | None:
    """Return the difference B - A of two cells, None if they cannot be compared."""
    if len(a.runs) > 1 or len(b.runs) > 1:
        is_enough = min(len(a.means), len(b.means)) > 1
        return trainings_difference(a.means, b.means) if is_enough else None
    shared = a.returns.index.intersection(b.returns.index, sort=True)
    return None if shared.empty else paired_difference(a.returns[shared], b.returns[shared])


def _values(found: PairedDifference | None, a: str, b: str) -> dict:
    """Return the difference A - B in numbers and in words."""
    if not found:
        return {"pairs": 0, "sentence": "not compared"}
    mean = {name: _finite(value) for name, value in vars(found.mean).items()}
    counts = {name: getattr(found, name) for name in ("pairs", "wins", "ties", "losses")}
    detectable = _finite(found.detectable)
    return mean | counts | {"detectable": detectable, "sentence": found.sentence(b, a)}


def _finite(value: float) -> float | None:
    return None if math.isnan(value) else float(f"{value:.6g}")


def _interval(value: float, low: float | None, high: float | None) -> Interval:
    return Interval(value, *(math.nan if bound is None else bound for bound in (low, high)))


def _page(rows, names, is_checkpoints: bool, summary: Mapping, unfinished: Sequence) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    files = ("colors.css", "suite.css", "suite.js")
    *styles, script = ((_TEMPLATES / name).read_text("utf-8") for name in files)
    style = "".join(styles)
    return environment.get_template("suite.html.j2").render(
        rows=rows,
        columns=list(names),
        names=names,
        is_checkpoints=is_checkpoints,
        summary=summary,
        unfinished=unfinished,
        is_large=len(summary["runs"]) > _LARGE,
        most_paired=_MOST_PAIRED,
        style=style,
        script=script,
        digest=_digest,
        pluralize=pluralize,
        number=format_decimals,
        interval=_interval,
        scale=_scale,
        ticks=_ticks,
    )


def _digest(text: str) -> str:
    """Return the hash by which a page's security policy allows an inline script or style."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _scale(value: float, span: tuple[float, float], start: float, end: float) -> str:
    """Return the coordinate of a value, for coordinates of the bounds of its span."""
    low, high = span
    share = (value - low) / (high - low) if high > low else 0.5
    return f"{start + share * (end - start):.1f}"


def _ticks(span: tuple[float, float], count: int) -> list[float]:
    low, high = span
    ticks = MaxNLocator(nbins=count, steps=[1, 2, 5, 10]).tick_values(low, high)
    return [tick.item() for tick in ticks if low <= tick <= high]
