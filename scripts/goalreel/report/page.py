"""Write the report: a web page that plays the film and finds every episode in it.

The report is a folder that opens from disk and loads nothing from outside.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import jinja2

from goalreel.errors import format_bytes, format_duration, pluralize
from goalreel.files.atomic import link_or_copy, replacing_folder
from goalreel.files.svg_plot import read_caption
from goalreel.mp4.reader import VideoIndex, read_index
from goalreel.provenance.checksums import write_folder_sums
from goalreel.provenance.embedded_specs import read_spec, tools_of
from goalreel.provenance.spec import Spec
from goalreel.report.page_rows import Totals, columns, write_rows
from goalreel.report.reach_rate import policy_label, reach_rate, read_table
from goalreel.report.timings import read_timings

_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Sources:
    """The files of a run that the report shows."""

    film: Path
    tables: Sequence[Path]  # filmed episodes and, for a run of reaches, all attempts
    plots: Sequence[Path]  # SVG files
    views: Mapping[str, Path]  # other videos by title
    artifacts: Sequence[Path]  # the files whose specs the page shows
    stages: Sequence[str]  # the stages that made the film, in order


def write_report(folder: Path, sources: Sources, spec: Spec) -> int:
    """Write the report, and return the number of episodes that it lists.

    Raises GoalreelError if the film, a table or a plot cannot be used.
    """
    film, unit = read_index(sources.film), spec.config["unit"]
    with replacing_folder(folder) as temporary:
        for path in (sources.film, *sources.tables, *sources.plots, *sources.views.values()):
            link_or_copy(path, temporary / path.name)
        styles = ((_TEMPLATES / name).read_bytes() for name in ("colors.css", "report.css"))
        (temporary / "report.css").write_bytes(b"".join(styles))
        (temporary / "report.js").write_bytes((_TEMPLATES / "report.js").read_bytes())
        table = read_table(sources.tables[0], columns(unit))
        rows = write_rows(temporary / "data.js", table, spec.config["film.fps"], unit)
        page = _page(sources, film, rows, spec)
        (temporary / "index.html").write_text(page, encoding="utf-8", newline="\n")
        write_folder_sums(temporary)
    return rows.episodes


def _page(sources: Sources, film: VideoIndex, rows: Totals, spec: Spec) -> str:
    fps, results = spec.config["film.fps"], sources.film.parent
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    specs = {os.path.relpath(path, results): read_spec(path) for path in sources.artifacts}
    specs["report"] = spec
    # Empty if the stages ran elsewhere and left their benchmarks on object storage.
    timings = read_timings(results / "benchmarks", sources.stages, spec.shard["shards"])
    policy, unit = spec.config["policy"], spec.config["unit"]
    return environment.get_template("report.html.j2").render(
        env=spec.config["env"],
        policy=policy_label(policy),
        unit=unit,
        reproducible=spec.reproducible,
        title=pluralize(spec.shard["reaches"], "goal reach" if unit == "reach" else unit),
        rows=rows,
        spreads=[("Return", rows.returns, rows.decimals), ("Steps", rows.steps, 0)],
        mean=_mean,
        figure=_figure,
        frames=film.frames,
        fps=fps,
        size=film.size,
        clock=format_duration(film.frames / fps),
        film_size=format_bytes(sources.film.stat().st_size),
        film=sources.film.name,
        tables=[path.name for path in sources.tables],
        views=[(title, path.name) for title, path in sources.views.items()],
        plots=[(path.name, read_caption(path)) for path in sources.plots],
        rates=[reach_rate(attempts) for attempts in sources.tables[1:]],
        timings=timings | {"all": tuple(map(sum, zip((0, 0), *timings.values(), strict=True)))},
        specs=specs,
        json=partial(json.dumps, indent=2, sort_keys=True, ensure_ascii=False),
        tools=tools_of(specs.values()),
    )


def _figure(value: float, decimals: int) -> str:
    """Return a number with a minus sign, and at least one decimal if it is not whole."""
    decimals = max(decimals, 1 if value % 1 else 0)
    return f"{value:,.{decimals}f}".replace("-", "−")


def _mean(spread: Mapping, decimals: int) -> str:
    """Return a mean ± standard deviation, with at least one decimal."""
    if spread["least"] == spread["most"]:
        return _figure(spread["mean"], decimals)
    return " ± ".join(_figure(spread[name], max(decimals, 1)) for name in ("mean", "std"))
