"""The summary at the end of a run: what was made, how large it is, where the time went."""

import csv
import itertools
from collections.abc import Iterable
from pathlib import Path

from goalreel.encoding.choice import Choice
from goalreel.errors import GoalreelError
from goalreel.mp4.reader import read_outline

# A file of each view that is written whenever the view is made.
VIEWS = {
    "films": "films.csv",
    "clips": "clips/clips.csv",
    "grid": "grid.mp4",
    "swarm": "swarm.mp4",
    "phase": "phase.mp4",
    "stills": "stills/poster.png",
    "learning": "learning.mp4",
    "pixels": "pixels/policy.npz",
    "training": "training/table.md",
    "report": "report/index.html",
}


def summary(results: str | Path, shards: Iterable[str], encoder: Choice) -> str:
    """Return the summary of a finished run as some lines of text.

    results: the folder with the film, the tables and the rules' benchmark files. shards: the
    names of those that are in the film, since files of a longer film may stand beside them.
    encoder: how the film was planned. Raises GoalreelError if the film or a table cannot be used,
    or they are not of one run.
    """
    results, shards = Path(results), set(shards)
    film = results / "film.mp4"
    index = read_outline(film)
    seconds = index.frames * index.durations[0] / index.timescale
    reaches, episodes, frames = _count(results / "episodes.csv")
    if frames != index.frames:
        raise GoalreelError("episodes.csv is of another film; run snakemake for both")
    attempts = _count(results / "attempts.csv")[1]
    lines = [
        ("film", f"{film}, {_clock(seconds)}, {film.stat().st_size / 1e6:,.1f} MB"),
        ("shows", f"{reaches:,} goal reaches in {episodes:,} episodes, {index.frames:,} frames"),
        ("encoder", encoder.told),
        ("tables", f"{results / 'episodes.csv'}, {results / 'attempts.csv'} ({attempts:,} rows)"),
        (
            "seconds",
            ", ".join(
                f"{s} {spent:.1f}"
                for s, spent in _stage_seconds(results, shards, encoder.assembled)
            ),
        ),
    ]
    return "\n".join(f"{name:>8}  {text}" for name, text in lines)


def views(results: str | Path, since: float) -> str:
    """Return a line for each view that was made after `since` (seconds since the epoch)."""
    made = [(name, Path(results, file)) for name, file in VIEWS.items()]
    made = [(name, file) for name, file in made if file.is_file() and file.stat().st_mtime >= since]
    return "\n".join(f"{name:>8}  {_view(name, file)}" for name, file in made)


def _view(name: str, file: Path) -> str:
    if name == "films":
        return _films(file)
    if name == "training":
        return f"{file}\n{file.read_text(encoding='utf-8').strip()}"
    if name != "clips":
        return f"{file}, {file.stat().st_size / 1e6:,.1f} MB"
    with file.open(newline="", encoding="utf-8") as stream:
        clips = sum(1 for _ in csv.DictReader(stream))
    if clips == 0:
        return "warning: the triggers of `clips` select nothing, so that there is no clip"
    return f"{file.parent}, {clips:,} videos"


def _films(file: Path) -> str:
    with file.open(newline="", encoding="utf-8") as stream:
        rows = [(float(row["seconds"]), int(row["bytes"])) for row in csv.DictReader(stream)]
    seconds, size = map(sum, zip(*rows, strict=True))
    return f"{file}, {len(rows):,} films of {_clock(seconds)}, {size / 1e6:,.1f} MB"


def _count(table: Path) -> tuple[int, int, int]:
    """Return a table's rows that reach the goal, all its rows, and their frames with cards."""
    reached = rows = frames = 0
    with table.open(newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            reached += row["reached"] == "True"
            rows += 1
            frames += int(row.get("card_frames", 0)) + int(row["steps"]) + 1
    return reached, rows, frames


def _stage_seconds(results: Path, shards: set[str], assembled: bool) -> list[tuple[str, float]]:
    """Return the seconds of each stage, summed over its jobs, in the order of the data flow."""
    order = ("simulate", "atlas", "coded_atlas", "render", "encode", "concat", "episodes")
    spent = []
    for stage in order:
        if stage == "coded_atlas" and not assembled:
            continue
        folder = results / "benchmarks"
        files = [folder / f"{stage}.tsv", *(folder / stage / f"{s}.tsv" for s in sorted(shards))]
        found = [_seconds(path) for path in files if path.is_file()]
        spent.append((stage, sum(itertools.chain.from_iterable(found))))
    return spent


def _seconds(benchmark: Path) -> list[float]:
    with benchmark.open(newline="", encoding="utf-8") as stream:
        return [float(row["s"]) for row in csv.DictReader(stream, delimiter="\t")]


def _clock(seconds: float) -> str:
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}"
