"""Verdicts: what a verification found of each stage's results, as lines and as a table."""

import csv
import shlex
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from goalreel.errors import GoalreelError, Unusable, counted, file_size
from goalreel.files.atomic import replacing
from goalreel.provenance.checksums import STAMP, SUMS

COLUMNS = ("stage", "files", "frames", "bytes", "verdict")
OTHER = "made by other options, code or tools"


@dataclass(frozen=True)
class Content:
    """What an intact file, or a folder that is one output, holds."""

    size: int  # bytes
    files: int = 1
    frames: int = 0
    episodes: int = 0
    source: str = ""  # the digest of the trajectories that it shows
    is_planned: bool = True  # by the options, code and tools that are planned now


@dataclass
class Verdict:
    """What was found of a stage's results."""

    stage: str
    contents: dict[Path, Content] = field(default_factory=dict)  # of intact files
    errors: dict[Path, str] = field(default_factory=dict)  # of damaged files
    missing: list[Path] = field(default_factory=list)
    # Why a file could not be read: the file may be intact.
    unchecked: dict[Path, str] = field(default_factory=dict)
    # Files that no run needs, so that none makes them again.
    spare: set[Path] = field(default_factory=set)
    # The files of folders that are one output each.
    listed: set[Path] = field(default_factory=set)
    note: str = ""

    def check(self, path: Path, read: Callable[[], Content]) -> Content | None:
        """Return what `read` finds in a file, None after an error, which is kept."""
        self.contents.pop(path, None)
        try:
            content = self.contents[path] = read()
            return content
        except Unusable as error:
            self.errors[path] = error.fault
            self.listed |= set(error.files)
        except GoalreelError as error:
            if path.exists():
                self.unchecked[path] = str(error).removeprefix(f"{path}: ")
            else:
                self.missing.append(path)
        return None

    def reject(self, path: Path, error: str) -> None:
        """Note an error of a file that was taken for intact."""
        self.contents.pop(path)
        self.errors[path] = error

    @property
    def frames(self) -> int:
        """The number of frames in all files."""
        return sum(content.frames for content in self.contents.values())

    @property
    def episodes(self) -> int:
        """The number of episodes in all files."""
        return sum(content.episodes for content in self.contents.values())

    @property
    def row(self) -> tuple[str, int, int, int, str]:
        """The values of COLUMNS."""
        files = sum(content.files for content in self.contents.values())
        size = sum(content.size for content in self.contents.values())
        return self.stage, files, self.frames, size, self.status

    @property
    def status(self) -> str:
        """The verdict in a few words, "" if the stage left nothing."""
        missing = "freed" if self.stage == "render" else "missing"
        counts = {"damaged": self.errors, missing: self.missing, "not checked": self.unchecked}
        problems = ", ".join(f"{len(paths):,} {word}" for word, paths in counts.items() if paths)
        if problems or not self.contents:
            return problems
        is_planned = all(content.is_planned for content in self.contents.values())
        return ", ".join(filter(None, ("ok", self.note, "" if is_planned else OTHER)))

    def __str__(self) -> str:
        """Return the verdict as a line of text, "" if the stage left nothing."""
        stage, files, frames, size, status = self.row
        count = counted(files, "file") if files else ""
        shown = f"{frames:,} frames" if frames else ""
        bytes_ = file_size(size) if files else ""
        return f"{stage:>11}  {count:>14}  {shown:>18}  {bytes_:>12}  {status}" if status else ""


def remove(verdicts: Iterable[Verdict]) -> list[Path]:
    """Remove damaged files.

    A folder that is one output stays, as `unchecked`, if a file in it may be the user's: Snakemake
    would take the folder for made.

    Args:
        verdicts: what was found.

    Returns:
        The files to make again, damaged or missing.

    Raises:
        OSError: a file cannot be removed.
    """
    again = []
    for verdict in verdicts:
        for path in sorted(verdict.errors):
            if not path.is_dir() or path.is_symlink():
                path.unlink(missing_ok=True)
            elif other := _other(path, verdict):
                verdict.unchecked[path] = (
                    f"{verdict.errors.pop(path)}; {other} may be yours: move it away, "
                    f"then run rm -r {shlex.quote(str(path))}"
                )
                continue
            else:
                shutil.rmtree(path)
            again += [] if path in verdict.spare else [path]
        again += [] if verdict.stage == "render" else sorted(verdict.missing)
    return again


def _other(folder: Path, verdict: Verdict) -> str:
    """Return the name of a file that no list of goalreel's names, "" if there is none."""
    files = {path for path in folder.rglob("*") if not path.is_dir()}
    others = files - verdict.listed - {folder / SUMS, folder / STAMP}
    return min((path.name for path in others), default="")


def error_report(verdicts: Sequence[Verdict], again: Sequence[Path]) -> str:
    """Return a report of results that are not whole.

    Args:
        verdicts: what was found.
        again: what `remove` returned, for the last line; nothing if nothing was removed.

    Returns:
        The report, "" if the results are whole.
    """
    errors = [item for v in verdicts for item in sorted((v.errors | v.unchecked).items())]
    errors += [(path, "missing") for v in verdicts if v.stage != "render" for path in v.missing]
    if not errors:
        return ""
    removed = again and any(verdict.errors for verdict in verdicts)
    lines = [f"the results are not whole{'; damaged files are removed' if removed else ''}"]
    lines += [*map(str, verdicts), *(f"{path}: {error}" for path, error in errors)]
    return "\n".join([*lines, *([f"make again: {shlex.join(map(str, again))}"] if again else [])])


def write_verdicts(path: Path, verdicts: Iterable[Verdict]) -> None:
    """Write the verdicts as a table."""
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(COLUMNS)
        table.writerows(verdict.row for verdict in verdicts)
