"""The summary at the end of a run: what was made, how large it is, where the time went."""

import csv
import math
from pathlib import Path
from statistics import fmean, pstdev

from goalreel.encoding.choice import Choice
from goalreel.errors import GoalreelError, clock, counted, file_size
from goalreel.mp4.reader import read_outline
from goalreel.provenance.spec import parse_spec
from goalreel.report.timings import read_timings
from goalreel.workflow.stages import FILM, STAGES


def film_summary(results: Path, shards: int, encoder: Choice, unit: str) -> str:
    """Return the summary of a finished film as some lines of text.

    Args:
        results: the folder with the film, the tables and the rules' benchmark files.
        shards: the film's number of shards, since files of a longer film may be beside them.
        encoder: how the film was planned.
        unit: what the run counts, "reach" or "episode".

    Raises:
        GoalreelError: if the film or a table cannot be used, or they are not of one run.
    """
    film = results / "film.mp4"
    index = read_outline(film)
    seconds = index.frames * index.durations[0] / index.timescale
    shows, frames = _shown(results / "episodes.csv")
    if frames != index.frames:
        raise GoalreelError("episodes.csv is of another film; run snakemake for both")
    tables = [results / "episodes.csv"]
    if unit == "reach":
        tables.append(results / "attempts.csv")
        with tables[-1].open(newline="", encoding="utf-8") as stream:
            rows = counted(sum(1 for _ in csv.DictReader(stream)), "row")
    *timings, _ = read_timings(results / "benchmarks", FILM, shards, frames)
    lines = {
        "film": f"{film}, {clock(seconds)}, {file_size(film.stat().st_size)}",
        "shows": f"{shows}, {counted(index.frames, 'frame')}",
        "encoder": encoder.label,
        "tables": ", ".join(map(str, tables)) + (f" ({rows})" if unit == "reach" else ""),
        "seconds": ", ".join(f"{timing.stage} {timing.seconds:.1f}" for timing in timings),
    }
    if sizes := parse_spec(index.comment, film).value.get("sizes"):
        least, most = (f"{width}x{height}" for height, width in sizes)
        lines["pictures"] = f"of {least} to {most} pixels, padded with black to {most}"
    return "\n".join(f"{name:>8}  {text}" for name, text in lines.items())


def view_summary(results: Path, since: float) -> str:
    """Return a line for each view that was made after `since` (seconds since the epoch)."""
    views = {name: results / stage.summary for name, stage in STAGES.items() if stage.summary}
    new = {n: path for n, path in views.items() if path.is_file() and path.stat().st_mtime >= since}
    return "\n".join(f"{name:>8}  {_view(path)}" for name, path in new.items())


def _view(path: Path) -> str:
    """Return a view's file and what is in it: a table of videos, a table to read, or its size."""
    if path.suffix == ".md":
        return f"{path}\n{path.read_text(encoding='utf-8').strip()}"
    if path.name == "compare.csv":
        return f"{path}: {_differences(path)}"
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as stream:
            videos = sum(1 for _ in csv.DictReader(stream))
        return f"{path}, {counted(videos, 'video')}"
    return str(path) if path.suffix == ".html" else f"{path}, {file_size(path.stat().st_size)}"


def _differences(table: Path) -> str:
    """Return in words by how much the second of two compared runs differs from the first."""
    with table.open(newline="", encoding="utf-8") as stream:
        differences = [float(row["difference"]) for row in csv.DictReader(stream)]
    better, worse = (sum(sign * d > 0 for d in differences) for sign in (1, -1))
    return (
        f"{counted(len(differences), 'seed')}, the second returns {fmean(differences):+.4g} on "
        f"average; better {better:,}, worse {worse:,}, equal {len(differences) - better - worse:,}"
    )


def _shown(table: Path) -> tuple[str, int]:
    """Return in words what the table of filmed episodes lists, and their frames with cards."""
    frames, returns, truncated, reached = 0, [], 0, None
    with table.open(newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            frames += int(row["card_frames"]) + int(row["steps"]) + 1
            returns.append(float(row["return"] or "nan"))  # pandas writes none for NaN
            truncated += row["truncated"] == "True"
            if "reached" in row:
                reached = (reached or 0) + (row["reached"] == "True")
    episodes = counted(len(returns), "episode")
    if reached is not None:
        return f"{counted(reached, 'goal reach')} in {episodes}", frames
    mean = fmean(returns)
    spread = pstdev(returns) if math.isfinite(mean) else math.nan
    return f"{episodes}, return {mean:.4g} ± {spread:.3g}, {truncated:,} truncated", frames
