"""The report: a folder with a page that plays the film and finds every reach in it.

The folder opens from disk and asks for nothing outside itself. How the page looks and behaves
stands in templates/; what the tables, timings and specs tell, in outcomes, timings and lineage.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
import numpy as np
import pandas as pd

from goalreel.checksums import write_folder_sums
from goalreel.errors import GoalreelError
from goalreel.folders import place, replacing_folder
from goalreel.lineage import Made, read_made, tools_of
from goalreel.mp4 import VideoIndex, read_index
from goalreel.outcomes import pieces, policy_label, reach_rate
from goalreel.plot_captions import read_caption
from goalreel.spec import Spec
from goalreel.timings import read_timings

_TEMPLATES = Path(__file__).parent / "templates"
_COLUMNS = ("reach", "attempt", "seed", "steps", "return", "start_s")


@dataclass(frozen=True)
class Sources:
    """The run's files that the report shows.

    views: further videos by their titles; plots: SVG files of plots; made: files whose specs are
    told; benchmarks: the folder of the stages' timings
    """

    film: Path
    episodes: Path
    attempts: Path
    plots: Sequence[Path]
    views: Mapping[str, Path]
    made: Sequence[Path]
    benchmarks: Path


def write_report(folder: Path, sources: Sources, spec: Spec) -> int:
    """Write the report and return the number of episodes that its page lists.

    Raises GoalreelError if the film, a table or a plot cannot be used, or they are not of one run.
    """
    film = read_index(sources.film)
    rows = pd.concat(pieces(sources.episodes, _COLUMNS), ignore_index=True)
    _check(sources, film, rows, spec)
    with replacing_folder(folder) as temporary:
        linked = [sources.film, sources.episodes, sources.attempts, *sources.plots]
        for path in [*linked, *sources.views.values()]:
            place(path, temporary / path.name)
        for name in ("report.css", "report.js"):
            (temporary / name).write_bytes((_TEMPLATES / name).read_bytes())
        _write(temporary / "data.js", f"const GOALREEL = {_data(rows, spec)};\n")
        _write(temporary / "index.html", _page(sources, film, rows, spec))
        write_folder_sums(temporary)
    return len(rows)


def _check(sources: Sources, film: VideoIndex, rows: pd.DataFrame, spec: Spec) -> None:
    reached, wanted = int(rows["reached"].sum()), spec.shard["reaches"]
    if reached != wanted:
        raise GoalreelError(f"{sources.episodes}: tells of {reached} reaches, not {wanted}")
    fps = spec.config["film.fps"]
    last = int(_reset_frames(rows, fps).iloc[-1] + rows["steps"].iloc[-1]) + 1
    if film.timescale != fps * film.durations[0] or last > film.frames:
        raise GoalreelError(
            f"{sources.film}: is of another run than {sources.episodes}, which tells of {last} "
            f"frames at {fps} fps; delete it and run snakemake again"
        )


def _reset_frames(rows: pd.DataFrame, fps: int) -> pd.Series:
    """Return the number of the film's frame that shows each episode's reset state."""
    return (rows["start_s"] * fps).round().astype(np.int64)


def _data(rows: pd.DataFrame, spec: Spec) -> str:
    """Return the table as JSON, by columns so that no name is repeated in each row."""
    fps = spec.config["film.fps"]
    columns = {name: rows[name].tolist() for name in ("reach", "attempt", "seed", "steps")}
    columns["return"] = rows["return"].round(6).tolist()
    columns["reached"] = rows["reached"].astype(np.int8).tolist()
    columns["frame"] = _reset_frames(rows, fps).tolist()
    return json.dumps({"fps": fps, **columns}, separators=(",", ":"))


def _page(sources: Sources, film: VideoIndex, rows: pd.DataFrame, spec: Spec) -> str:
    fps, results = spec.config["film.fps"], sources.film.parent
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made = [read_made(path, results) for path in sources.made]
    made.append(Made("report", json.loads(spec.text)))
    return environment.get_template("report.html.j2").render(
        env=spec.config["env"],
        policy=policy_label(spec.config["policy"]),
        reaches=spec.shard["reaches"],
        episodes=len(rows),
        failed=int((~rows["reached"]).sum()),
        steps=(int(rows["steps"].min()), int(rows["steps"].max())),
        frames=film.frames,
        fps=fps,
        clock=_clock(film.frames / fps),
        megabytes=sources.film.stat().st_size / 1e6,
        film=sources.film.name,
        tables=[sources.episodes.name, sources.attempts.name],
        views=[(title, path.name) for title, path in sources.views.items()],
        plots=[(path.name, read_caption(path)) for path in sources.plots],
        rates=[reach_rate(sources.attempts, spec.config["policy"])],
        timings=read_timings(sources.benchmarks, spec.shard["shards"], film.frames),
        made=made,
        tools=tools_of(made),
    )


def _clock(seconds: float) -> str:
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
