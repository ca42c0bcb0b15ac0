"""The exceptions that a user may see. What they say is complete: no traceback is needed."""

import errno
import os
from collections.abc import Iterable, Sequence
from pathlib import Path


class GoalreelError(Exception):
    """Bad input or a failed tool; the message names the culprit and what to do."""


class OptionError(GoalreelError):
    """What is wrong with an option; key: the option's, such as "policy.file"."""

    def __init__(self, key: str, message: str) -> None:
        """Name the option and what is wrong with it."""
        super().__init__(key, message)
        self.key, self.message = key, message

    def __str__(self) -> str:
        """Return the whole message."""
        return f"{self.key}: {self.message}"


class Stopped(GoalreelError):  # noqa: N818 - a stop is no error
    """A signal has stopped a program that has saved its work."""


class UnusableFileError(GoalreelError):  # noqa: N818 - it is said of the file
    """A file of the run that is not what goalreel wrote there, or not for this run.

    path: the file, or a folder that is made as a whole; problem: what is wrong with it; files: what
    is deleted of it; others: more such files that were found with it. Nothing is lost with them,
    since the workflow makes them again.
    """

    def __init__(
        self, path: str | os.PathLike, problem: str, files: Sequence[Path] | None = None
    ) -> None:
        """Name the file and what is wrong with it; files: those of a folder."""
        super().__init__(f"{path}: cannot be used: {problem}; delete it and run snakemake again")
        self.path = Path(path)
        self.problem = problem
        self.files = [self.path] if files is None else list(files)
        self.others: tuple[UnusableFileError, ...] = ()


def is_system_error(error: BaseException) -> bool:
    """Tell whether a file that could not be read may be sound: no right, no handles, a bad disk.

    An EINVAL comes of a place in the file that cannot be, EISDIR of a folder in its stead; zipfile
    raises OSError without a number too.
    """
    number = error.errno if isinstance(error, OSError) else None
    return number not in (None, errno.EINVAL, errno.EISDIR, errno.ENOTDIR)


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return a question that names the most similar known word, "" if none is similar."""
    import difflib

    close = difflib.get_close_matches(str(word), list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def pluralize(number: int, word: str) -> str:
    """Return a number with a word in its plural: "1 reach", "1,000 reaches"."""
    plural = "" if number == 1 else "es" if word.endswith("ch") else "s"
    return f"{number:,} {word}{plural}"


def format_bytes(size: int) -> str:
    """Return a number of bytes as "312 kB" or "4.1 MB"."""
    return f"{size / 1e6:,.1f} MB" if size >= 999_500 else f"{max(size / 1e3, 1):.0f} kB"


def clock(seconds: float) -> str:
    """Return a duration as "0:03:17", in hours, minutes and seconds."""
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}"


def shortened(message: str, most: int) -> list[str]:
    """Return a message's lines, at most `most`: the first and the last of a longer one.

    Lines that only mark a place in the line above, as tracebacks have them, are left out.
    """
    lines = [line for line in message.splitlines() if line.strip(" ^~")] or [""]
    return lines if len(lines) <= most else [lines[0], *lines[1 - most :]]
