"""The errors that a user may see, and the phrases of their messages.

A message is `<key or path>: <Problem>. <Fix>.`, and details follow on indented lines.
"""

import os
import shlex
import sys
import textwrap
import traceback
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

_MOST_VALUES, _ROOM = 5, 110  # allowed values in a message, and the characters that they take
_PACKAGE = str(Path(__file__).parent)
_MOST_SHOWN = 40  # characters of a value that a message repeats


class GoalreelError(Exception):
    """Bad input or a failed tool. The message is complete without a traceback."""


class OptionError(GoalreelError):
    """A wrong option, with its key, such as "policy.file"."""

    def __init__(self, key: str, message: str) -> None:
        """Take the option's key, and a message without it."""
        super().__init__(key, message)
        self.key, self.message = key, message

    def __str__(self) -> str:
        return f"{self.key}: {self.message}"


class Stopped(GoalreelError):  # noqa: N818 - a stop is no error
    """A signal has stopped a program that has saved its work."""


class InexactFrameError(GoalreelError):
    """A frame differs from `env.render()`, which renders all frames from now on."""


class UnusableFileError(GoalreelError):  # noqa: N818 - it is said of the file
    """A file of the run that is damaged or belongs to another run. The next run makes it again.

    Attributes:
        path: the file, or a folder that is one output.
        problem: what is wrong with it, in a few words.
        files: the files to delete.
        others: errors of other files, found at the same time.
    """

    def __init__(self, path: str | os.PathLike, problem: str, files: Sequence[Path] | None = None):
        """Take the file and its problem, and the files to delete if it is a folder."""
        self.path = Path(path)
        self.problem = problem
        self.files = [self.path] if files is None else list(files)
        self.others: tuple[UnusableFileError, ...] = ()
        super().__init__(self.with_fix("Delete it, and the next run makes it again."))

    def with_fix(self, fix: str) -> str:
        """Return the message with a fix."""
        return f"{self.path}: {self.problem[:1].upper()}{self.problem[1:]}. {fix}"


def suggest(word: object, known: Iterable[str]) -> str:
    """Return a question that names the most similar known word, "" if none is similar."""
    import difflib

    close = difflib.get_close_matches(str(word), known, 1, cutoff=0.5)
    return f"Did you mean {close[0]!r}?" if close else ""


def use(values: Collection[str], room: int = _ROOM, page: str = "docs/reference/options.md") -> str:
    """Return the fix that names the allowed values, or a page if they take more room."""
    if not values:
        return "Remove it."
    *others, last = values
    listed = f"{', '.join(others)} or {last}" if others else last
    is_short = listed.count(", ") <= _MOST_VALUES - 2 and len(listed) <= room
    return f"Use {listed}." if is_short else f"See {page}."


def unknown(kind: str, word: object, known: Collection[str]) -> str:
    """Return the message about an unknown word, with the most similar known one or all of them."""
    return f"Unknown {kind} {quoted(word)}. {suggest(word, known) or use(known)}"


def not_allowed(value: object, values: Collection[str]) -> str:
    """Return the message about a value that is not one of the allowed ones."""
    shown = quoted(value)
    return f"{shown} is not allowed. {use(values, _ROOM - len(shown))}"


def quoted(value: object) -> str:
    """Return a value in quotes as YAML writes it, cut short if it is long."""
    import json

    if isinstance(value, str):
        shown = repr(value)[1:-1]
    else:
        try:
            shown = json.dumps(value, ensure_ascii=False, default=str)
        except (TypeError, ValueError, RecursionError):  # as keys that are dates, 5,000 digits
            shown = type(value).__name__
    if len(shown) > _MOST_SHOWN:
        shown = f"{shown[:_MOST_SHOWN]}..."
    return "'" + shown.replace("'", "''") + "'"


def needs_package(what: str, package: str, requirement: str = "") -> str:
    """Return the message about a missing package; `what` needs it, and `requirement` is for pip."""
    command = f"pip install {shlex.quote(requirement or package)}"
    return f"{what} needs the package {package}. Install it: {command}\n  Python: {sys.executable}"


def pluralize(number: int, word: str) -> str:
    """Return a number with a word in its plural: "1 reach", "1,000 reaches"."""
    plural = "" if number == 1 else "es" if word.endswith("ch") else "s"
    return f"{number:,} {word}{plural}"


def listed(words: Collection[object], most: int) -> str:
    """Return the first words, and the number of the others: "a, b and 3 more"."""
    more = f" and {len(words) - most:,} more" if len(words) > most else ""
    return ", ".join([*map(str, words)][:most]) + more


def format_bytes(size: int) -> str:
    """Return a number of bytes as "312 kB" or "4.1 MB"."""
    return f"{size / 1e6:,.1f} MB" if size >= 999_500 else f"{max(size / 1e3, 1):.0f} kB"


def format_duration(seconds: float) -> str:
    """Return a duration as "0:03:17", in hours, minutes and seconds."""
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"


def shortened(message: str, most: int) -> list[str]:
    """Return at most `most` lines of a message, the first and the last ones, without markers."""
    lines = [line for line in message.splitlines() if line.strip(" ^~")] or [""]
    return lines if len(lines) <= most else [lines[0], *lines[1 - most :]]


def trace_of(error: BaseException) -> str:
    """Return an indented traceback that starts in the user's code, without goalreel's calls."""
    frame = error.__traceback__
    while frame and frame.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.tb_next
    trace = "".join(traceback.format_exception(type(error), error, frame)).rstrip()
    return textwrap.indent(trace, "  ")
