"""Verdicts: what a verification found of each stage's results, as lines and as a table."""

import csv
import shlex
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from goalreel.errors import GoalreelError, UnusableFileError, format_bytes, pluralize
from goalreel.files.atomic import replacing
from goalreel.provenance.checksums import STAMP, SUMS

COLUMNS = ("stage", "files", "frames", "bytes", "verdict")
OTHER = "made by other options, code or tools"


@dataclass
class File:
    """What was found of a file, or of a folder that is one output."""

    size: int = 0  # bytes
    files: int = 1
    frames: int = 0
    source: str = ""  # the digest of the trajectories that it shows
    is_planned: bool = True  # by the options, code and tools that are planned now
    status: str = "ok"  # "damaged", "missing", or "not checked": it may be intact
    error: str = ""
    listed: Sequence[Path] = ()  # the files of a damaged folder

    @property
    def is_ok(self) -> bool:
        """Whether it is intact."""
        return self.status == "ok"

    def reject(self, error: str, status: str = "damaged") -> None:
        """Note an error of a file that was taken for intact."""
        self.status, self.error = status, error


def inspect(path: Path, read: Callable[[], File]) -> File:
    """Return what `read` finds in a file, or the error that it raises."""
    try:
        return read()
    except UnusableFileError as error:
        return File(status="damaged", error=error.problem, listed=error.files)
    except GoalreelError as error:
        if not path.exists():
            return File(status="missing", error="missing")
        return File(status="not checked", error=str(error).removeprefix(f"{path}: "))


@dataclass
class Verdict:
    """What was found of a stage's results."""

    stage: str
    files: dict[Path, File] = field(default_factory=dict)
    note: str = ""

    def having(self, status: str) -> dict[Path, str]:
        """Return the errors of the files of a status, by their paths."""
        return {path: file.error for path, file in self.files.items() if file.status == status}

    def total(self, name: str) -> int:
        """Return a sum over all intact files; name: of a field."""
        return sum(getattr(file, name) for file in self.files.values() if file.is_ok)

    @property
    def row(self) -> tuple[str, int, int, int, str]:
        """The values of COLUMNS."""
        return self.stage, *map(self.total, ("files", "frames", "size")), self.status

    @property
    def status(self) -> str:
        """The verdict in a few words, "" if the stage left nothing."""
        missing = "freed" if self.stage == "render" else "missing"
        words = {"damaged": "damaged", "missing": missing, "not checked": "not checked"}
        counts = [(len(self.having(status)), word) for status, word in words.items()]
        problems = ", ".join(f"{count:,} {word}" for count, word in counts if count)
        if problems or not self.files:
            return problems
        is_planned = all(file.is_planned for file in self.files.values())
        return ", ".join(filter(None, ("ok", self.note, "" if is_planned else OTHER)))

    def __str__(self) -> str:
        """Return the verdict as a line of text, "" if the stage left nothing."""
        stage, files, frames, size, status = self.row
        count = pluralize(files, "file") if files else ""
        shown = f"{frames:,} frames" if frames else ""
        bytes_ = format_bytes(size) if files else ""
        return f"{stage:>11}  {count:>14}  {shown:>18}  {bytes_:>12}  {status}" if status else ""


def remove(verdicts: Iterable[Verdict]) -> list[Path]:
    """Remove damaged files.

    A folder that is one output stays, as "not checked", if a file in it may be the user's:
    Snakemake would take the folder for made.

    Args:
        verdicts: what was found.

    Returns:
        The files to make again, damaged or missing.

    Raises:
        OSError: a file cannot be removed.
    """
    again = []
    for verdict in verdicts:
        for path in sorted(verdict.having("damaged")):
            file = verdict.files[path]
            if not path.is_dir() or path.is_symlink():
                path.unlink(missing_ok=True)
            elif other := _other(path, file.listed):
                hint = f"move it away, then run rm -r {shlex.quote(str(path))}"
                file.reject(f"{file.error}; {other} may be yours: {hint}", "not checked")
                continue
            else:
                shutil.rmtree(path)
            again.append(path)
        again += [] if verdict.stage == "render" else sorted(verdict.having("missing"))
    return again


def _other(folder: Path, listed: Iterable[Path]) -> str:
    """Return the name of a file that no list of goalreel's names, "" if there is none."""
    files = {path for path in folder.rglob("*") if not path.is_dir()}
    return min((path.name for path in files - {*listed, folder / SUMS, folder / STAMP}), default="")


def error_report(verdicts: Sequence[Verdict], again: Sequence[Path]) -> str:
    """Return a report of results that are not whole, "" if they are.

    Args:
        verdicts: what was found.
        again: what `remove` returned, for the last line; nothing if nothing was removed.
    """
    errors = [v.having("damaged") | v.having("not checked") for v in verdicts]
    errors = [item for found in errors for item in sorted(found.items())]
    needed = [verdict for verdict in verdicts if verdict.stage != "render"]
    errors += [item for verdict in needed for item in verdict.having("missing").items()]
    if not errors:
        return ""
    removed = again and any(verdict.having("damaged") for verdict in verdicts)
    lines = [f"the results are not whole{'; damaged files are removed' if removed else ''}"]
    lines += [*map(str, verdicts), *(f"{path}: {error}" for path, error in errors)]
    return "\n".join([*lines, *([f"make again: {shlex.join(map(str, again))}"] if again else [])])


def write_verdicts(path: Path, verdicts: Iterable[Verdict]) -> None:
    """Write the verdicts as a table."""
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(COLUMNS)
        table.writerows(verdict.row for verdict in verdicts)
