"""The table of the benchmark: from samples to rows, and to CSV and Markdown.

    step      who did what, and on how much of it this was measured
    FPS       frames per second of wall-clock time; environment steps in `simulation` and
              episodes in `seeding`
    ΔFPS      change against the group's first row, its baseline
    time, s   wall-clock time for the group's whole work, the median over the runs
    Δtime     change against the baseline
    ratio     the baseline's time divided by this one

The CSV adds the number of runs, the fastest and the slowest of them, and the machine.
"""

import csv
import importlib.metadata
import io
import os
import platform
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.sample import Sample

HEADER = ("step", "FPS", "ΔFPS", "time, s", "Δtime", "ratio")
NOT_INSTALLED = "not installed"
_PACKAGES = ("snakemake", "numpy", "gymnasium", "pygame-ce", "moviepy", "envpool", "imageio-ffmpeg")


@dataclass(frozen=True)
class Contender:
    """Who is compared within a group, and its samples, one per run; None: not installed."""

    group: str
    name: str
    samples: tuple[Sample, ...] | None


@dataclass(frozen=True)
class Row:
    """A contender's figures; seconds: of all runs, scaled to the group's whole work."""

    step: str
    units: int
    seconds: tuple[float, ...]
    baseline: float | None

    @property
    def time(self) -> float:
        """The median time."""
        return statistics.median(self.seconds)

    @property
    def ratio(self) -> float | None:
        """The baseline's time divided by this one; None without a baseline."""
        return self.baseline / self.time if self.baseline else None

    def cells(self) -> tuple[str, ...]:
        """Return the cells below HEADER."""
        if not self.seconds:
            return (self.step, NOT_INSTALLED, "", "", "", "")
        speed, taken = f"{self.units / self.time:.0f}", _digits(self.time)
        if self.ratio is None:
            return (self.step, speed, "", taken, "", "")
        faster, longer = self.ratio - 1, 1 / self.ratio - 1
        changes = _percent(faster), _percent(longer)
        return (self.step, speed, changes[0], taken, changes[1], _digits(self.ratio))


def make_rows(contenders: Iterable[Contender]) -> list[Row]:
    """Return a row per contender, in their order; the first of each group is its baseline.

    Who did less than the most that a contender of its group did is scaled up to that.
    """
    groups: dict[str, list[Contender]] = {}
    for contender in contenders:
        groups.setdefault(contender.group, []).append(contender)
    return [row for members in groups.values() for row in _group_rows(members)]


def _group_rows(members: list[Contender]) -> list[Row]:
    whole = max(sample.units for member in members for sample in member.samples or ())
    rows, baseline = [], None
    for member in members:
        samples = member.samples or ()
        seconds = tuple(sample.seconds * whole / sample.units for sample in samples)
        if member is members[0] and seconds:
            baseline = statistics.median(seconds)
        rows.append(Row(_label(member, whole), whole, seconds, baseline))
    return rows


def _label(contender: Contender, whole: int) -> str:
    label = f"{contender.group}: {contender.name}"
    remarks = []
    for sample in (contender.samples or ())[:1]:
        if sample.units < whole:
            remarks.append(f"measured on {sample.played}, scaled")
        if sample.lost:
            remarks.append(f"{sample.lost:,} of {sample.units:,} frames lost")
    return f"{label} ({'; '.join(remarks)})" if remarks else label


def as_csv(rows: list[Row], machine: str) -> str:
    """Return the table as CSV."""
    lines = [
        [
            *row.cells(),
            len(row.seconds),
            *(_digits(choose(row.seconds)) if row.seconds else "" for choose in (min, max)),
        ]
        for row in rows
    ]
    return csv_text([*HEADER, "runs", "fastest, s", "slowest, s"], lines, machine)


def csv_text(header: Iterable, rows: Iterable[Iterable], machine: str) -> str:
    """Return rows of cells as CSV, with a column for the machine."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*header, "machine"])
    writer.writerows([*row, machine] for row in rows)
    return text.getvalue()


def as_markdown(rows: list[Row], notes: list[str]) -> str:
    """Return the table as Markdown, with the notes as a list below it."""
    return markdown(HEADER, map(_grouped_cells, rows), notes)


def markdown(
    header: Sequence[str], rows: Iterable[Iterable[str]], notes: list[str], words: int = 1
) -> str:
    """Return rows of cells as Markdown, `words` columns of text first, notes as a list below."""
    lines = [header, ["---"] * words + ["---:"] * (len(header) - words), *rows]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"{table}\n\n" + "".join(f"- {note}\n" for note in notes)


def _grouped_cells(row: Row) -> list[str]:
    """Return a row's cells with commas in the thousands, for reading."""
    return [
        row.step,
        *(re.sub(r"(?<!\.)\b\d{4,}", _with_commas, cell, count=1) for cell in row.cells()[1:]),
    ]


def _with_commas(digits: re.Match) -> str:
    return f"{int(digits[0]):,}"


def _digits(value: float) -> str:
    """Return a number with three digits, and a large one with one decimal."""
    return f"{value:.1f}" if value >= 10 else f"{value:.3g}"


def _percent(change: float) -> str:
    return f"{change:+.0%}" if abs(change) >= 1 else f"{change:+.1%}"


def available_cores() -> int:
    """Return the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def describe_machine(cores: int, packages: Sequence[str] | None = None) -> str:
    """Return a line on the machine: processor, cores, Python, packages.

    packages: None for those that film, and ffmpeg
    """
    versions = [f"{name} {_version(name)}" for name in packages or _PACKAGES]
    system = f"{platform.system()} {platform.machine()}"
    machine = (
        f"{_processor()}, {cores} of its {os.cpu_count()} cores, {system}; "
        f"Python {platform.python_version()}, {', '.join(versions)}"
    )
    if packages:
        return machine
    import imageio_ffmpeg

    return f"{machine}; ffmpeg {imageio_ffmpeg.get_ffmpeg_version()}"


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return NOT_INSTALLED


def _processor() -> str:
    listing = Path("/proc/cpuinfo")
    lines = listing.read_text(encoding="utf-8").splitlines() if listing.is_file() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
