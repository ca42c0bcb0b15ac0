"""Verdicts: what a verification found of each stage's results, as lines and as a table."""

import csv
import shlex
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from goalreel.errors import GoalreelError, UnusableFileError, format_bytes, pluralize
from goalreel.files.atomic import replacing
from goalreel.provenance.checksums import STAMP, SUMS, other_files

_PROBLEMS = ("damaged", "missing", "not checked")  # which may be intact


@dataclass
class File:
    """What was found of a file, or of a folder that is one output."""

    size: int = 0  # bytes
    files: int = 1
    frames: int = 0
    source: str = ""  # the digest of the trajectories that it shows
    status: str = "ok"
    error: str = ""

    @property
    def is_ok(self) -> bool:
        """Whether it is intact."""
        return self.status == "ok"

    def reject(self, error: str, status: str = "damaged") -> None:
        """Note an error of a file that was taken for intact."""
        self.status, self.error = status, error


def inspect(path: Path, read: Callable[[], File]) -> File:
    """Return what `read` finds in a file, or the error that it raises."""
    if not path.exists():
        return File(status="missing", error="missing")
    try:
        return read()
    except UnusableFileError as error:
        return File(status="damaged", error=error.problem)
    except GoalreelError as error:
        return File(status="not checked", error=str(error).removeprefix(f"{path}: "))


@dataclass
class Verdict:
    """What was found of a stage's results."""

    stage: str
    files: dict[Path, File]
    note: str = ""

    def having(self, status: str) -> list[Path]:
        """Return the paths of the files of a status."""
        return sorted(path for path, file in self.files.items() if file.status == status)

    def total(self, name: str) -> int:
        """Return a sum over all intact files; name: of a field."""
        return sum(getattr(file, name) for file in self.files.values() if file.is_ok)

    @property
    def row(self) -> tuple[str, int, int, int, str]:
        """The stage, its files, frames and bytes, and the verdict."""
        return self.stage, *map(self.total, ("files", "frames", "size")), self.status

    @property
    def status(self) -> str:
        """The verdict in a few words, "" if the stage left nothing."""
        counts = {status: len(self.having(status)) for status in _PROBLEMS}
        problems = ", ".join(f"{count:,} {word}" for word, count in counts.items() if count)
        ok = ", ".join(filter(None, ("ok", self.note))) if self.files else ""
        return problems or ok

    def __str__(self) -> str:
        """Return the verdict as a line of text."""
        stage, files, frames, size, status = self.row
        count = pluralize(files, "file") if files else ""
        shown = f"{frames:,} frames" if frames else ""
        return f"{stage:>11}  {count:>14}  {shown:>18}  {format_bytes(size):>12}  {status}"


def remove(verdicts: Iterable[Verdict]) -> list[Path]:
    """Remove damaged files; return those to make again, damaged or missing.

    A folder that is one output stays, as "not checked", if a file in it may be the user's:
    Snakemake would take the folder for made. Raises OSError if a file cannot be removed.
    """
    again = []
    for verdict in verdicts:
        again += verdict.having("missing")
        for path in verdict.having("damaged"):
            if not path.is_dir() or path.is_symlink():
                path.unlink(missing_ok=True)
            elif other := _other_file(path):
                hint = f"move it away, then run rm -r {shlex.quote(str(path))}"
                error = f"{verdict.files[path].error}; {other} may be yours: {hint}"
                verdict.files[path].reject(error, "not checked")
                continue
            else:
                shutil.rmtree(path)
            again.append(path)
    return again


def _other_file(folder: Path) -> str:
    """Return the name of a file that no list of goalreel's names, "" if there is none."""
    try:
        others = other_files(folder)
    except UnusableFileError:  # the list is damaged
        others = [path for path in folder.rglob("*") if path.name not in (SUMS, STAMP)]
    return min((path.name for path in others), default="")


def error_report(verdicts: Sequence[Verdict], again: Sequence[Path]) -> str:
    """Return a report of results that are not whole, "" if they are.

    Args:
        verdicts: what was found.
        again: what `remove` returned, for the last line; nothing if nothing was removed.
    """
    errors = [f"{p}: {f.error}" for v in verdicts for p, f in v.files.items() if not f.is_ok]
    if not errors:
        return ""
    head = f"the results are not whole{'; damaged files are removed' if again else ''}"
    last = [f"make again: {shlex.join(map(str, again))}"] if again else []
    return "\n".join([head, *map(str, verdicts), *errors, *last])


def write_verdicts(path: Path, verdicts: Iterable[Verdict]) -> None:
    """Write the verdicts as a table."""
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as stream:
        head = ("stage", "files", "frames", "bytes", "verdict")
        csv.writer(stream, lineterminator="\n").writerows([head, *(v.row for v in verdicts)])
