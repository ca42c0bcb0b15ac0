"""Write the page of a suite, a single file: its runs in a matrix, differences and films."""

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from goalreel.cli import read_failure
from goalreel.errors import pluralize, shortened
from goalreel.files.atomic import write_text
from goalreel.provenance.spec import Spec, common_digest, folder_name
from goalreel.report import statistics
from goalreel.report.episode_table import read_table
from goalreel.report.page import TEMPLATES, hash_source, open_template
from goalreel.report.statistics import Interval, PairedDifference

_LARGE = 40  # runs above which cells are small and rows folded
_MOST_PAIRED = 6  # columns up to which a row compares all pairs, instead of each with the best
# The stages without which there is no summary.
_PLAYED = ("import_recording", "play", "choose", "simulate", "episodes")
_FILES = {"report": "report/index.html", "film": "film.mp4"}
_FILES |= {"poster": "stills/poster.png", "preview": "stills/preview.webp"}


@dataclass
class _Cell:
    """The runs of a row and a column, with intervals over its episodes or its trainings."""

    runs: Sequence[Mapping]  # as in suite.csv
    returns: pd.Series | None  # of a single finished run, by seed
    mark: str = ""  # the result of the comparison with the row's best

    @property
    def finished(self) -> list[Mapping]:
        return [run for run in self.runs if run["state"] == "finished"]

    def sample(self) -> Sequence[float]:
        """Return the means of trainings, or the returns of a policy without any."""
        if len(self.runs) > 1:
            return [run["mean"] for run in self.finished if run["mean"] is not None]
        return [] if self.returns is None else self.returns.tolist()

    def estimate(self, name: str, low: str, high: str) -> Interval | None:
        """Return the interval of a column of suite.csv, None without values."""
        found = [run for run in self.finished if run[name] is not None]
        if not found:
            return None
        if len(self.runs) > 1:
            return statistics.trainings_interval([run[name] for run in found])
        values = [found[0][key] for key in (name, low, high)]
        return Interval(*(math.nan if value is None else value for value in values))


def write_suite(folder: Path, runs: Sequence[Mapping], is_checkpoints: bool, spec: Spec) -> str:
    """Write index.html, suite.csv and summary.json of a suite, also of one whose runs failed.

    A run has `run`, its folder in `folder`, `row`, its environment, and `column`, its policy or the
    steps of its checkpoint. Trainings of one row and column have a `training_seed`. Its tables have
    the `digest` of their spec, or are older ones. Rows and columns have the order in which they
    first appear, columns that are training steps (`is_checkpoints`) their own. Returns a line to
    log.
    """
    found: dict[str, dict[str, list[Mapping]]] = {}
    for run in runs:
        found.setdefault(run["row"], {}).setdefault(run["column"], []).append(run)
    columns = sorted(
        {run["column"]: None for run in runs}, key=int if is_checkpoints else lambda _: 0
    )
    names = {column: f"{int(column):,} steps" if is_checkpoints else column for column in columns}
    rows = [
        _row(folder, label, {c: _cell(folder, row[c]) for c in columns if c in row}, names)
        for label, row in found.items()
    ]
    cells = [cell for row in rows for cell in row["cells"].values()]
    records = [run | {"mark": cell.mark} for cell in cells for run in cell.runs]
    table = pd.DataFrame(records).drop(columns="files")
    write_text(folder / "suite.csv", table.to_csv(index=False, lineterminator="\n"))
    summary = {
        "interval": "trainings" if any(len(cell.runs) > 1 for cell in cells) else "episodes",
        "runs": records,
        "pairs": [pair for row in rows for pair in row["pairs"]],
        "spec": spec.value,
    }
    without_nan = json.loads(json.dumps(summary), parse_constant=lambda _: None)
    text = json.dumps(without_nan, indent=1, ensure_ascii=False)
    write_text(folder / "summary.json", f"{text}\n")
    unfinished = [run for run in records if run["state"] != "finished"]
    page = open_template("suite.html.j2").render(
        rows=rows,
        names=names,
        is_checkpoints=is_checkpoints,
        summary=summary,
        unfinished=unfinished,
        is_large=len(runs) > _LARGE,
        has_all_pairs=len(columns) <= _MOST_PAIRED,
        content=lambda name: (TEMPLATES / name).read_text(encoding="utf-8"),
        allowed=lambda name: hash_source(TEMPLATES / name),
        pluralize=pluralize,
        number=statistics.format_decimals,
        interval=Interval,
        ticks=lambda span: MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(*span).tolist(),
    )
    write_text(folder / "index.html", page)
    note = f", {len(unfinished):,} without results" if unfinished else ""
    return pluralize(len(runs), "run") + note


def _cell(folder: Path, runs: Sequence[Mapping]) -> _Cell:
    records, returns = zip(*(_read(folder, run) for run in runs), strict=True)
    return _Cell(records, returns[0])


def _read(folder: Path, run: Mapping) -> tuple[dict, pd.Series | None]:
    """Return a run's row of suite.csv, and its returns by seed if it has finished."""
    path = folder / run["run"]
    file = path / "tables.json"
    made = json.loads(file.read_bytes()) if file.is_file() else {}
    is_present = common_digest(made) == run["digest"]
    summary = json.loads((path / "summary.json").read_bytes()) if is_present else {}
    since = file.stat().st_mtime if summary else 0.0
    dated = [(log.stat().st_mtime, log) for log in path.glob("logs/**/*.log")]
    logs = [log for time, log in sorted(dated, reverse=True) if time > since]
    logs = [log for log in logs if not (summary and _stage_of(log, path) in _PLAYED)]
    failure, log = next(((f, log) for log in logs if (f := read_failure(log))), (None, None))
    error = " ".join(line.strip() for line in shortened(failure["error"], 2)) if failure else None
    files = {key: path / name for key, name in _FILES.items()} | {"log": log}
    returned, success = (summary.get(part) or {} for part in ("return", "success"))
    record = {
        **{name: value for name, value in run.items() if name != "digest"},
        "state": "finished" if summary else "failed" if failure else "not finished",
        "error": error and f"{_stage_of(log, path)}: {error}",
        "episodes": summary.get("episodes", 0),
        **{name: returned.get(name) for name in ("mean", "low", "high", "std")},
        "success": success.get("share"),
        **{f"success_{name}": success.get(name) for name in ("low", "high")},
        "files": {key: _address(folder, file) for key, file in files.items()},
    }
    if not summary:
        return record, None
    rows = read_table(path / "episodes.csv", ("seed", "return"))
    if len(rows) < summary["episodes"]:  # a film of chosen episodes
        rows = read_table(path / "played.csv", ("seed", "return"))
    seeded = rows[(rows["seed"] >= 0) & np.isfinite(rows["return"])].drop_duplicates("seed")
    return record, seeded.set_index("seed")["return"]


def _stage_of(log: Path, run: Path) -> str:
    return log.relative_to(run / "logs").with_suffix("").parts[0]


def _address(folder: Path, file: Path | None) -> str | None:
    """Return the address of a file from the page, None if there is none."""
    return file.relative_to(folder).as_posix() if file and file.is_file() else None


def _row(folder: Path, label: str, cells: dict[str, _Cell], names: Mapping[str, str]) -> dict:
    """Return a row: its cells with their marks, the pairs, and the film of the deciding seeds."""
    found = {c: cell.estimate("mean", "low", "high") for c, cell in cells.items()}
    means = {c: mean for c, mean in found.items() if mean is not None}
    ranked = sorted(means, key=lambda column: means[column].value, reverse=True)
    found = {
        (a, b): _difference(cells[b], cells[a])
        for a, b in itertools.combinations(ranked, 2)
        if len(names) <= _MOST_PAIRED or a == ranked[0]
    }
    of_best = {b: difference for (a, b), difference in found.items() if a == ranked[0]}
    worse = {b for b, difference in of_best.items() if difference and difference.mean.low > 0}
    ties = {b for b, difference in of_best.items() if difference} - worse
    for column in of_best.keys() - worse - ties:
        cells[column].mark = "not compared"
    for column in (ranked[0], *ties) if worse else ():
        cells[column].mark = "among the best" if ties else "best"
    bounds = [bound for mean in means.values() for bound in vars(mean).values()]
    compared = folder / "compare" / folder_name(label)
    film = _address(folder, compared / "compare.mp4")
    is_whole = all(len(cell.finished) == len(cell.runs) for cell in cells.values())
    return {
        "label": label,
        "cells": cells,
        "means": means,
        "pairs": [_pair(label, *pair, difference, names) for pair, difference in found.items()],
        "is_tie": bool(ties and not worse),
        "span": (np.nanmin(bounds), np.nanmax(bounds)) if bounds else None,
        "film": film if is_whole else None,
        "seeds": _filmed_seeds(compared / "compare.csv") if film and is_whole else [],
    }


def _filmed_seeds(table: Path) -> list[dict[str, str]]:
    """Return the rows of the seeds that the film of a comparison shows, in its order."""
    rows = pd.read_csv(table, dtype=str, keep_default_na=False)
    rows = rows[rows["start_s"] != ""]
    return rows.sort_values("start_s", key=pd.to_numeric).to_dict("records")


def _difference(a: _Cell, b: _Cell) -> PairedDifference | None:
    """Return the difference B - A of two cells, None if they cannot be compared."""
    if len(a.runs) > 1 or len(b.runs) > 1:
        values = a.sample(), b.sample()
        return statistics.trainings_difference(*values) if min(map(len, values)) > 1 else None
    shared = a.returns.index.intersection(b.returns.index, sort=True)
    both = a.returns[shared], b.returns[shared]
    return None if shared.empty else statistics.paired_difference(*both)


def _pair(row: str, a: str, b: str, found: PairedDifference | None, names: Mapping) -> dict:
    """Return the difference A - B in numbers and in words."""
    pair = {"row": row, "a": a, "b": b, "pairs": 0, "sentence": "not compared"}
    if found:
        mean = {"a_minus_b": found.mean.value, "low": found.mean.low, "high": found.mean.high}
        counts = {name: getattr(found, name) for name in ("pairs", "wins", "ties", "losses")}
        sentence = found.sentence(names[b], names[a])
        pair |= mean | counts | {"detectable": found.detectable, "sentence": sentence}
    return pair
