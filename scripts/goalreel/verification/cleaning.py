"""Removal: of all that goalreel made in the results, or of the frame caches alone."""

from collections.abc import Iterable
from pathlib import Path

from goalreel.verification.artefacts import frame_caches, sort_out

_MOST_NAMED = 20


def clean(results: Path) -> str:
    """Remove what goalreel made in `results`, and the folders that are empty then.

    Returns what was done in some lines: what was freed, and which files are not goalreel's and
    stay. Raises OSError if a file cannot be removed.
    """
    made, others = sort_out(results)
    told = _remove(made, results)
    if not others:
        return told
    named = [f"  {_printable(path)}" for path in others[:_MOST_NAMED]]
    more = [f"  and {len(others) - _MOST_NAMED:,} more"] if len(others) > _MOST_NAMED else []
    count = "1 file stays that is" if len(others) == 1 else f"{len(others):,} files stay that are"
    return "\n".join([told, f"{count} not goalreel's:", *named, *more])


def _printable(path: Path) -> str:
    """Return a path in one line that tells a terminal nothing else."""
    return str(path) if str(path).isprintable() else repr(str(path))


def free_frames(results: Path) -> str:
    """Remove the frame caches in `results`; return what was freed. Raises OSError as clean."""
    return _remove(frame_caches(results), results, "frame caches")


def _remove(files: Iterable[Path], results: Path, what: str = "files") -> str:
    count = freed = 0
    folders = set()
    for path in files:
        status = path.lstat()
        path.unlink()
        count += 1
        freed += status.st_size if status.st_nlink == 1 else 0  # else it stands elsewhere too
        folders |= {folder for folder in path.parents if folder.is_relative_to(results)}
    for folder in sorted(folders, key=lambda folder: -len(folder.parts)):
        if not folder.is_symlink() and not any(folder.iterdir()):
            folder.rmdir()
    return f"{count:,} {what} removed from {results}, {freed / 1e6:,.1f} MB freed"
