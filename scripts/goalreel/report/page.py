"""The report: a folder with a page that plays the film and finds every reach in it.

The folder opens from disk and asks for nothing outside itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2

from goalreel.errors import GoalreelError
from goalreel.files.atomic import place, replacing_folder
from goalreel.files.svg_plot import read_caption
from goalreel.mp4.reader import Outline, read_outline
from goalreel.provenance.checksums import write_folder_sums
from goalreel.provenance.embedded_specs import Artefact, read_artefact, tools_of
from goalreel.provenance.spec import Spec
from goalreel.report.page_rows import COLUMNS, Totals, write_rows
from goalreel.report.reach_rate import pieces, policy_label, reach_rate
from goalreel.report.timings import read_timings

_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Sources:
    """The run's files that the report shows."""

    film: Path
    episodes: Path  # the table of filmed episodes
    attempts: Path  # the table of all attempts
    plots: Sequence[Path]  # SVG files
    views: Mapping[str, Path]  # further videos by their titles
    artefacts: Sequence[Path]  # the files whose specs the page lists
    benchmarks: Path  # the folder of the stages' timings
    stages: Sequence[str]  # those of the film, in order


def write_report(folder: Path, sources: Sources, spec: Spec) -> int:
    """Write the report and return the number of episodes that its page lists.

    Raises GoalreelError if the film, a table or a plot cannot be used, or they are not of one run.
    """
    film = read_outline(sources.film)
    with replacing_folder(folder) as temporary:
        files = [sources.film, sources.episodes, sources.attempts, *sources.plots]
        for path in [*files, *sources.views.values()]:
            place(path, temporary / path.name)
        for name in ("report.css", "report.js"):
            (temporary / name).write_bytes((_TEMPLATES / name).read_bytes())
        table = pieces(sources.episodes, COLUMNS)
        rows = write_rows(temporary / "data.js", table, spec.config["film.fps"])
        _check(sources, film, rows, spec)
        page = _page(sources, film, rows, spec)
        (temporary / "index.html").write_text(page, encoding="utf-8", newline="\n")
        write_folder_sums(temporary)
    return rows.episodes


def _check(sources: Sources, film: Outline, rows: Totals, spec: Spec) -> None:
    expected, fps = spec.shard["reaches"], spec.config["film.fps"]
    if rows.reached != expected:
        raise GoalreelError(f"{sources.episodes}: lists {rows.reached} reaches, not {expected}")
    if film.timescale != fps * film.durations[0] or rows.end > film.frames:
        raise GoalreelError(
            f"{sources.film}: is of another run than {sources.episodes}, which lists {rows.end} "
            f"frames at {fps} fps; delete it and run snakemake again"
        )


def _page(sources: Sources, film: Outline, rows: Totals, spec: Spec) -> str:
    fps, results = spec.config["film.fps"], sources.film.parent
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    artefacts = [read_artefact(path, results) for path in sources.artefacts]
    artefacts.append(Artefact("report", spec))
    return environment.get_template("report.html.j2").render(
        env=spec.config["env"],
        policy=policy_label(spec.config["policy"]),
        reaches=spec.shard["reaches"],
        episodes=rows.episodes,
        failed=rows.failed,
        steps=rows.steps,
        frames=film.frames,
        fps=fps,
        clock=_clock(film.frames / fps),
        megabytes=sources.film.stat().st_size / 1e6,
        film=sources.film.name,
        tables=[sources.episodes.name, sources.attempts.name],
        views=[(title, path.name) for title, path in sources.views.items()],
        plots=[(path.name, read_caption(path)) for path in sources.plots],
        rates=[reach_rate(sources.attempts, spec.config["policy"])],
        timings=read_timings(sources.benchmarks, sources.stages, spec.shard["shards"], film.frames),
        artefacts=artefacts,
        tools=tools_of(artefacts),
    )


def _clock(seconds: float) -> str:
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"
