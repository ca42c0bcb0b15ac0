"""The summary at the end of a run: what was made, what its stages say of it, and their times."""

from pathlib import Path

from goalreel.cli import read_log
from goalreel.errors import clock, format_bytes, pluralize
from goalreel.mp4.reader import read_index
from goalreel.report.timings import read_timings
from goalreel.workflow.plan import Plan
from goalreel.workflow.stages import FILM, STAGES


def run_summary(plan: Plan, since: float) -> str:
    """Return lines about what was made after `since` (seconds since the epoch).

    Raises:
        GoalreelError: if the film or a benchmark cannot be used.
    """
    results = Path(plan.config["results"])
    made = {name: results / stage.summary for name, stage in STAGES.items() if stage.summary}
    made |= {"film": results / "film.mp4", "verify": results / "verify.csv"}
    made = {n: path for n, path in made.items() if path.is_file() and path.stat().st_mtime >= since}
    lines = _film(plan, made.pop("film")) if "film" in made else {}
    verdicts = read_log(results / "logs" / "verify.log") if made.pop("verify", None) else []
    for name, path in made.items():
        table = f"\n{path.read_text(encoding='utf-8').strip()}" if path.suffix == ".md" else ""
        lines[name] = f"{path}, {_last_words(results, name)}{table}"
    return "\n".join([*verdicts, *(f"{name:>8}  {text}" for name, text in lines.items())])


def _film(plan: Plan, film: Path) -> dict[str, str]:
    index, results = read_index(film), film.parent
    seconds = index.frames * index.durations[0] / index.timescale
    lines = {"film": f"{film}, {clock(seconds)}, {format_bytes(film.stat().st_size)}"}
    shown = _last_words(results, "episodes")
    if shown.endswith(f" {pluralize(index.frames, 'frame')}"):  # else the tables show another film
        tables = (results / table for table in ("episodes.csv", "attempts.csv"))
        lines |= {"shows": shown, "encoder": plan.run.encoder.label}
        lines["tables"] = ", ".join(str(table) for table in tables if table.is_file())
    *timings, _ = read_timings(results / "benchmarks", FILM, plan.run.shards, index.frames)
    lines["seconds"] = ", ".join(f"{timing.stage} {timing.seconds:.1f}" for timing in timings)
    joined = _last_words(results, "concat")
    return lines | ({"pictures": joined[9:]} if joined.startswith("pictures ") else {})


def _last_words(results: Path, stage: str) -> str:
    """Return what a stage's program said at its end, "" if its log is gone."""
    return "".join(read_log(results / "logs" / f"{stage}.log")[-1:])
