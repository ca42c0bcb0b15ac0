"""Verdicts: what a verification found of each stage's results, as lines and as a table."""

import csv
import shlex
import shutil
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from goalreel.errors import GoalreelError, Unusable, file_size
from goalreel.files.atomic import replacing

COLUMNS = ("stage", "files", "frames", "bytes", "verdict")


@dataclass
class Verdict:
    """What was found of a stage's results."""

    stage: str
    files: int = 0
    frames: int = 0
    size: int = 0  # bytes
    faults: dict[Path, str] = field(default_factory=dict)
    missing: list[Path] = field(default_factory=list)
    # Why a file could not be read, which may be no fault of its own.
    unchecked: dict[Path, str] = field(default_factory=dict)
    # Damaged files that no run needs, so that none makes them again.
    spare: set[Path] = field(default_factory=set)
    # Of a view that is one folder, the files in it that are goalreel's.
    listed: set[Path] = field(default_factory=set)
    note: str = ""

    def check(self, path: Path, check: Callable[[], int | None]) -> int | None:
        """Count a file and run its check; keep what is wrong with it. Return what check does."""
        try:
            result = check()
            self.files, self.size = self.files + 1, self.size + path.stat().st_size
            return result
        except Unusable as error:
            self.faults[path] = error.fault
        except GoalreelError as error:
            if path.exists():
                self.unchecked[path] = str(error).removeprefix(f"{path}: ")
            else:
                self.missing.append(path)
        return None

    def add(self, other: "Verdict") -> None:
        """Add what was found of another part of the stage."""
        self.files, self.frames = self.files + other.files, self.frames + other.frames
        self.size += other.size
        self.faults |= other.faults
        self.missing += other.missing
        self.unchecked |= other.unchecked
        self.spare |= other.spare

    @property
    def word(self) -> str:
        """The verdict in some words."""
        missing = "freed" if self.stage == "render" else "missing"
        counts = {"damaged": self.faults, missing: self.missing, "not checked": self.unchecked}
        words = [f"{len(paths):,} {word}" for word, paths in counts.items() if paths]
        words += [self.note] if self.note else []
        return ", ".join(words) or ("sound" if self.files else "not made")

    def __str__(self) -> str:
        """Return the verdict as a line of text."""
        frames = f"{self.frames:,} frames" if self.frames else ""
        files = f"{self.files:,} {'file' if self.files == 1 else 'files'}" if self.files else ""
        size = file_size(self.size) if self.files else ""
        return f"{self.stage:>11}  {files:>14}  {frames:>18}  {size:>12}  {self.word}"


def remove(verdicts: Iterable[Verdict]) -> list[Path]:
    """Remove what is damaged; return what is to be made again, for it or because it is missing.

    Of a view that is one folder the files that are goalreel's go; where others stand among them the
    folder stays, and is `unchecked`, since Snakemake would take it for made. Raises OSError.
    """
    again = []
    for verdict in verdicts:
        for path in list(verdict.faults):
            if not path.is_dir() or path.is_symlink():
                path.unlink(missing_ok=True)
            elif others := _others(path, verdict.listed):
                verdict.unchecked[path] = (
                    f"{verdict.faults.pop(path)}; it is left as it is, since {others} is not "
                    f"goalreel's: move it away, then delete the folder and run snakemake "
                    f"{verdict.stage}"
                )
                continue
            else:
                shutil.rmtree(path)
            again += [] if path in verdict.spare else [path]
        again += [] if verdict.stage == "render" else verdict.missing
    return again


def _others(folder: Path, listed: Set[Path]) -> str:
    """Return the name of a file that is not among those listed, "" if there is none."""
    marks = {folder / ".snakemake_timestamp", *listed}
    others = (path for path in folder.rglob("*") if path not in marks and not path.is_dir())
    return next((path.name for path in others), "")


def fault_report(verdicts: Sequence[Verdict], again: Sequence[Path]) -> str:
    """Return a report of results that are not whole, "" where they are.

    again: what `remove` returned, which the last line names; nothing if nothing was removed
    """
    faults = [item for v in verdicts for item in (v.faults | v.unchecked).items()]
    faults += [(path, "missing") for v in verdicts if v.stage != "render" for path in v.missing]
    if not faults:
        return ""
    gone = again and any(verdict.faults for verdict in verdicts)
    lines = [f"the results are not whole{'; what is damaged is removed' if gone else ''}"]
    lines += [str(verdict) for verdict in verdicts if verdict.word != "not made"]
    lines += [f"{path}: {fault}" for path, fault in faults]
    return "\n".join([*lines, *([f"make again: {shlex.join(map(str, again))}"] if again else [])])


def write_verdicts(path: Path, verdicts: Iterable[Verdict]) -> None:
    """Write the verdicts as a table."""
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(COLUMNS)
        table.writerows((v.stage, v.files, v.frames, v.size, v.word) for v in verdicts)
