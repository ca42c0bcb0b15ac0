"""Verdicts: what a verification found of each stage's results, as lines, as a table, and undone.

How files are checked stands in verify and verify_files.
"""

import csv
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from goalreel.atomic import replacing
from goalreel.errors import GoalreelError, Unusable

COLUMNS = ("stage", "files", "frames", "bytes", "verdict")


@dataclass
class Verdict:
    """What was found of a stage's results: their number, frames and bytes, and faults by file."""

    stage: str
    files: int = 0
    frames: int = 0
    size: int = 0
    faults: dict[Path, str] = field(default_factory=dict)
    missing: list[Path] = field(default_factory=list)
    note: str = ""

    def check(self, path: Path, check: Callable[[], int | None]) -> int | None:
        """Count a file and run its check; keep what is wrong with it. Return what check does."""
        try:
            found = check()
            self.files, self.size = self.files + 1, self.size + path.stat().st_size
            return found
        except Unusable as error:
            self.faults[path] = error.fault
        except GoalreelError as error:
            if path.exists():
                self.faults[path] = str(error)
            else:
                self.missing.append(path)
        return None

    def add(self, other: "Verdict") -> None:
        """Add what was found of another part of the stage."""
        self.files, self.frames = self.files + other.files, self.frames + other.frames
        self.size += other.size
        self.faults |= other.faults
        self.missing += other.missing

    @property
    def word(self) -> str:
        """The verdict in some words."""
        lost, said = len(self.missing), [f"{len(self.faults):,} damaged"] if self.faults else []
        if self.stage == "render":
            said += [f"{lost:,} freed"] if lost else []
        else:
            said += [f"{lost:,} missing"] if lost else []
        said += [self.note] if self.note else []
        return ", ".join(said) or ("sound" if self.files else "not made")

    def __str__(self) -> str:
        """Return the verdict as a line of text."""
        frames = f"{self.frames:,} frames" if self.frames else ""
        files = f"{self.files:,} {'file' if self.files == 1 else 'files'}" if self.files else ""
        size = f"{self.size / 1e6:,.1f} MB" if self.files else ""
        return f"{self.stage:>10}  {files:>14}  {frames:>18}  {size:>12}  {self.word}"


def remove(verdicts: Iterable[Verdict]) -> list[Path]:
    """Remove what is damaged; return what is to be made again, for it or because it is missing.

    Nothing but files of goalreel's is named in a verdict. Raises OSError.
    """
    wanted = []
    for verdict in verdicts:
        for path in verdict.faults:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
            wanted.append(path)
        wanted += [] if verdict.stage == "render" else verdict.missing
    return wanted


def write_verdicts(path: Path, verdicts: Iterable[Verdict]) -> None:
    """Write the verdicts as a table."""
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(COLUMNS)
        table.writerows((v.stage, v.files, v.frames, v.size, v.word) for v in verdicts)
