"""Write the report: a web page that plays the film and finds every episode in it.

The report is a folder that opens from disk and loads nothing from outside, or a single file.
"""

import base64
import hashlib
import json
import math
import mimetypes
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import quote

import jinja2
from PIL import Image

from goalreel.errors import GoalreelError, format_bytes, format_duration, pluralize
from goalreel.files.atomic import link_or_copy, replacing_folder
from goalreel.files.damage import reporting_damage
from goalreel.files.svg_plot import read_caption
from goalreel.mp4.reader import VideoIndex, read_index
from goalreel.policies.parameters import policy_label
from goalreel.provenance.checksums import write_folder_sums
from goalreel.provenance.embedded_specs import read_spec
from goalreel.provenance.spec import Spec, shard_name
from goalreel.rendering.blocks import enlarge_pixels
from goalreel.rendering.frame_cache import open_cache
from goalreel.report.episode_table import read_table
from goalreel.report.page_rows import Totals, columns, write_rows
from goalreel.report.signal_curves import signal_curves
from goalreel.report.statistics import Interval, format_decimals

TEMPLATES = Path(__file__).parent / "templates"
_STYLES = ("colors.css", "report.css")
_MAX_EMBEDDED = 50_000_000  # bytes of a film; browsers load the whole page before they show it


@dataclass(frozen=True)
class Sources:
    """The files of a run that the report shows."""

    film: Path
    tables: Sequence[Path]  # filmed episodes and, for a run of reaches, all attempts
    plots: Sequence[Path]  # SVG files
    frames: Path  # the frame cache of the first shard
    signals: Sequence[Path]  # the trajectories whose signals it shows
    summary: Path  # summary.json
    views: Mapping[str, Path]  # other videos by title
    artifacts: Sequence[Path]  # the files whose specs the page shows
    stages: Sequence[str]  # the stages that made the film, in order


def write_report(folder: Path, sources: Sources, spec: Spec) -> int:
    """Write the report, and return the number of episodes that it lists.

    Raises GoalreelError if the film is too large for the single page of `report.embed`.
    """
    film, unit = read_index(sources.film), spec.config["unit"]
    embed, size = spec.config["report.embed"], sources.film.stat().st_size
    if embed and size > _MAX_EMBEDDED:
        raise GoalreelError(
            f"report.embed: The film has {format_bytes(size)}, and a single page can hold "
            f"{format_bytes(_MAX_EMBEDDED)}. Film fewer episodes, or set report.embed=false."
        )
    with replacing_folder(folder) as temporary:
        for path in (sources.film, *sources.tables, *sources.plots, *sources.views.values()):
            link_or_copy(path, temporary / path.name)
        for name in (*_STYLES, "report.js"):
            (temporary / name).write_bytes((TEMPLATES / name).read_bytes())
        _write_poster(temporary / "poster.png", sources.frames, film.size)
        table = read_table(sources.tables[0], columns(unit, bool(spec.config["film.select"])))
        curves = signal_curves(sources.signals, len(table))
        rows = write_rows(temporary / "data.js", table, spec.config["film.fps"], unit, curves)
        page = _page(sources, film, rows, spec, temporary, curves is not None)
        if embed:
            for path in temporary.iterdir():
                path.unlink()
        (temporary / "index.html").write_text(page, encoding="utf-8", newline="\n")
        write_folder_sums(temporary, spec)
    return rows.episodes


def _write_poster(path: Path, frames: Path, size: tuple[int, int]) -> None:
    """Write the middle frame of the middle episode of a shard, enlarged as in the film."""
    cache = open_cache(frames)
    middle = cache.episode((len(cache.offsets) - 1) // 2)
    height, width, _ = cache.background.shape
    times = max(min(size[0] // width, size[1] // height), 1)
    image = enlarge_pixels(cache[middle[len(middle) // 2]], times)
    Image.fromarray(image).save(path, optimize=True)


def _page(
    sources: Sources, film: VideoIndex, rows: Totals, spec: Spec, folder: Path, has_curves: bool
) -> str:
    """Return the page. folder: its files, whose contents are in the page if they are embedded."""
    config, results = spec.config, sources.film.parent
    specs = {os.path.relpath(path, results): read_spec(path) for path in sources.artifacts}
    specs["report"] = spec
    # Empty if the stages ran elsewhere and left their benchmarks on object storage.
    timings = read_timings(results / "benchmarks", sources.stages, spec.shard["shards"])
    embed = config["report.embed"]
    with reporting_damage(sources.summary, "it is not a summary of a run"):
        summary = json.loads(sources.summary.read_bytes())
        statistics = [_statistic(summary[name]) for name in ("return", "steps")]
    return open_template("report.html.j2").render(
        config=config,
        sources=sources,
        video=film,
        styles=_STYLES,
        content=lambda name: (folder / name).read_text(encoding="utf-8"),
        allowed=lambda names: " ".join(
            hash_source(folder / n) if embed else "'self'" for n in names
        ),
        url=partial(_data_url, folder) if embed else quote,
        policy=policy_label(config["policy"]),
        remarks=spec.remarks,
        pluralize=pluralize,
        rows=rows,
        has_curves=has_curves,
        played=summary["episodes"],
        spreads=[
            ("Return", *statistics[0], rows.returns, rows.decimals),
            ("Steps", *statistics[1], rows.steps, 0),
        ],
        success=summary["success"],
        figure=lambda x, decimals: format_decimals(x, max(decimals, 1 if x % 1 else 0)),
        fixed=format_decimals,
        clock=format_duration(film.frames / config["film.fps"]),
        film_size=format_bytes(sources.film.stat().st_size),
        plots=[(path.name, read_caption(path)) for path in sources.plots],
        timings=timings | {"all": tuple(map(sum, zip((0, 0), *timings.values(), strict=True)))},
        specs=specs,
        json=partial(json.dumps, indent=2, sort_keys=True, ensure_ascii=False),
        tools=[
            (*tool, ", ".join({s.stage: 0 for s in specs.values() if tool in s.tools.items()}))
            for tool in sorted({tool for s in specs.values() for tool in s.tools.items()})
        ],
    )


def read_timings(
    benchmarks: Path, stages: Iterable[str], shards: int
) -> dict[str, tuple[int, float]]:
    """Return the number of jobs of each stage, and their total time in seconds.

    Snakemake writes the files, STAGE.tsv or STAGE/SHARD.tsv. Stages without files are skipped, and
    so are shards beyond the film's. Raises GoalreelError if a file is not a benchmark.
    """
    timings = {}
    for stage in stages:
        names = (f"{shard_name(shard)}.tsv" for shard in range(shards))
        if stage == "play":  # it has shards of its own
            names = sorted(path.name for path in (benchmarks / stage).glob("*.tsv"))
        files = [benchmarks / f"{stage}.tsv", *(benchmarks / stage / name for name in names)]
        seconds = []
        for path in filter(Path.is_file, files):
            with reporting_damage(path, "it is not a benchmark"):
                _, *rows = path.read_text(encoding="utf-8").splitlines()
                seconds.append(sum(float(row.split("\t")[0]) for row in rows))
        if seconds:
            timings[stage] = len(seconds), sum(seconds)
    return timings


def open_template(name: str) -> jinja2.Template:
    """Return a template, which escapes texts and has no undefined values."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def hash_source(path: Path) -> str:
    """Return the source of a content security policy that allows exactly this script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(path.read_bytes()).digest()).decode()}'"


def _data_url(folder: Path, name: str) -> str:
    kind = mimetypes.types_map[Path(name).suffix]
    return f"data:{kind};base64,{base64.b64encode((folder / name).read_bytes()).decode()}"


def _statistic(values: Mapping) -> tuple[Interval, float]:
    """Return the mean and the standard deviation in a summary."""
    mean, low, high, std = (
        math.nan if values[name] is None else values[name]
        for name in ("mean", "low", "high", "std")
    )
    return Interval(mean, low, high), std
