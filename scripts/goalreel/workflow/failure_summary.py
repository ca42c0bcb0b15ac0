"""What a failed run says at its end: which jobs failed, grouped by cause, and how to go on.

Which jobs failed is told by watch, which hears it from Snakemake. Here their logs are read, and
the words are found.
"""

import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_LAST_LINES = 10
_MOST_LINES = 40  # of one cause: ffmpeg's words and its command may be many
_MOST_SHARDS = 5
_NO_CAUSE = (
    "error: the job gave no cause: killed, perhaps for want of memory, or without room on the disk "
    "for its log"
)
# What the scheduler's plugins append to every message of theirs.
_ADVICE = re.compile(r"For further error details see the cluster/cloud log.*", re.S)
_STOPPED = ("error: terminated (SIGTERM)", "error: interrupted (SIGINT)")
# They would make again what this run has made.
_NOT_AGAIN = {"--forceall", "--force"}
_WITH_NAMES = {"-R", "--forcerun"}
_CLUSTER = re.compile(r"-([knpq]*)[fF]+([^fF].*)?")  # -F, -Fj2, ...


@dataclass(frozen=True)
class Failure:
    """A job that failed.

    shard: "" for a rule without shards; logs: the job's own, as far as this attempt wrote them;
    system_logs: the cluster's, of the job or of its group; message: what the executor said;
    external: the cluster's number of the job, or ""; group: the group that it ran in, or ""
    """

    rule: str
    shard: str = ""
    logs: Sequence[str] = ()
    system_logs: Sequence[str] = ()
    message: str = ""
    external: str = ""
    group: str = ""


def failure_summary(
    failures: Sequence[Failure], messages: Sequence[str], done: int, jobs: int
) -> str:
    """Return what failed and why, as some lines of text: equal causes are told once.

    messages: errors that are no job's own. done, jobs: how many jobs of the run have finished, and
    how many it was to have.
    """
    groups: dict[tuple, list[tuple[Failure, str]]] = {}
    for failure in sorted(_culprits(failures), key=lambda failure: failure.shard):
        cause = cause_of(failure)
        groups.setdefault((failure.rule, _pattern(cause)), []).append((failure, cause))
    lines = []
    for (rule, _), members in sorted(groups.items(), key=lambda item: -len(item[1])):
        first, cause = members[0]
        names = _shards([failure.shard for failure, _ in members])
        same = f" ({len(members):,} jobs of the same cause)" if len(members) > 1 else ""
        lines += [f"{rule}{names}{same}:", *(f"  {line}" for line in _shortened(cause))]
        lines += [f"  log: {log}" for log in [*first.logs, *first.system_logs]]
    for message in {_pattern(text): text for text in reversed(messages)}.values():
        lines += _shortened(_without_traceback(message))
    failed = sum(map(len, groups.values()))
    what = (
        f"{failed:,} {'job' if failed == 1 else 'jobs'} failed" if failed else "the run was stopped"
    )
    return "\n".join([f"{what}, {done:,} of {jobs:,} done", *lines])


def cause_of(failure: Failure) -> str:
    """Return why a job failed: its program's last words, else the cluster's, else what is known."""
    own = "\n".join(filter(None, map(_last_words, failure.logs)))
    if own and own not in _STOPPED:
        return own
    message = _ADVICE.sub("", failure.message).strip()
    told = [own, *map(_last_error, failure.system_logs), message]
    told = list(dict.fromkeys(filter(None, told)))
    if told:
        return "\n".join(told)
    last = [line for log in failure.logs for line in _read(log).splitlines()[-_LAST_LINES:]]
    asked = f"; the cluster calls it job {failure.external}" if failure.external else ""
    return "\n".join([*last, _NO_CAUSE + asked])


def targets_of(failures: Sequence[Failure]) -> list[str] | None:
    """Return what `verify`, if it failed, says is to be made again; None if it says nothing."""
    logs = [log for failure in failures if failure.rule == "verify" for log in failure.logs]
    said = "".join(map(_read, logs))
    named = re.search(r"^make again: (.+)", said, re.M | re.S)  # names may hold line breaks
    return shlex.split(named[1]) if named else None


def command_to_go_on(targets: Iterable[str] | None = None) -> str:
    """Return the command of this run, quoted for a shell, to be given once more.

    targets: what it is to make, in place of the target `verify`.
    """
    words = list(_without_force(sys.argv[1:]))
    if targets is not None:
        # The last one, as a folder of that name may stand before.
        place = len(words) - 1 - words[::-1].index("verify") if "verify" in words else 0
        words[place : place + ("verify" in words)] = targets
    return shlex.join([*_program(), *words])


def _without_force(words: Iterable[str]) -> Iterator[str]:
    """Yield the words of a command without those that make again what has been made."""
    named = False
    for word in words:
        named = word in _WITH_NAMES or (named and not word.startswith("-"))
        if named or word in _NOT_AGAIN:
            continue
        cluster = _CLUSTER.fullmatch(word)
        left = f"-{cluster[1]}{cluster[2] or ''}" if cluster else word
        if left != "-":
            yield left


def _program() -> list[str]:
    called = sys.argv[0]
    if Path(called).name == "__main__.py":  # python -m snakemake
        return [sys.orig_argv[0], "-m", Path(called).parent.name]
    return [Path(called).name] if shutil.which(Path(called).name) == called else [called]


def _culprits(failures: Sequence[Failure]) -> list[Failure]:
    """Return the failures without those jobs of a group that only fell with another of it."""
    guilty = {f.group for f in failures if f.group and any(map(_last_words, f.logs))}
    kept, seen = [], set()
    for failure in failures:
        if failure.group in guilty and not any(map(_last_words, failure.logs)):
            continue
        if failure.group and failure.group not in guilty:
            if failure.group in seen:  # none of them says a word: the group is told once
                continue
            seen.add(failure.group)
        kept.append(failure)
    return kept


def _last_words(log: str) -> str:
    """Return the last error of a program's log; before it may stand what ffmpeg warned of."""
    said = _read(log)
    if said.rstrip().endswith("\nKeyboardInterrupt"):  # before the program could say it itself
        return _STOPPED[1]
    marks = [match.start() for match in re.finditer(r"^(error: |Traceback )", said, re.M)]
    return said[marks[-1] :].rstrip() if marks else ""


def _last_error(log: str) -> str:
    """Return the last line of a cluster's log that tells of an error."""
    told = [line for line in _read(log).splitlines() if re.search(r"\berror:|\bKilled\b", line)]
    return told[-1].strip() if told else ""


def _read(log: str) -> str:
    try:
        return Path(log).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _pattern(cause: str) -> str:
    """Return a cause without what differs from shard to shard: numbers and temporary names."""
    lines = cause.splitlines()
    told = lines[-1:] if lines[0].startswith("Traceback") else lines[:3]
    return re.sub(r"\d+", "#", re.sub(r"\.goalreel-\w+", "", "\n".join(told)))


def _without_traceback(message: str) -> str:
    """Return an error of Snakemake's own in its last line, where it comes with a traceback."""
    lines = message.rstrip().splitlines()
    return lines[-1] if any("Traceback (most recent" in line for line in lines) else message


def _shortened(cause: str) -> list[str]:
    lines = cause.splitlines()
    if len(lines) <= _MOST_LINES:
        return lines
    half = _MOST_LINES // 2
    return [*lines[:half], f"... ({len(lines) - 2 * half} lines more in the log)", *lines[-half:]]


def _shards(shards: Sequence[str]) -> str:
    names = sorted(filter(None, shards))
    if not names:
        return ""
    more = f" and {len(names) - _MOST_SHARDS:,} more" if len(names) > _MOST_SHARDS else ""
    return f" {', '.join(names[:_MOST_SHARDS])}{more}"
