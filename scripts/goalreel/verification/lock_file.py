"""The lock file: the behavior of a policy as a small text file to commit.

Its first line is the version of its format. JSON follows: the options, versions and files that
affect the episodes, and their mean return. Then it has a line for each episode, with the fields of
`LockedEpisode`, and at its end the sha256 of all lines before.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from goalreel.errors import GoalreelError, OptionError, quoted

_HEAD = "goalreel lock 1"


class LockedEpisode(NamedTuple):
    """The behavior of an episode."""

    seed: int
    steps: int
    return_: float  # ten digits
    ending: str
    actions: str  # checksums of all steps
    observations: str
    rewards: str
    frames: str  # checksums of frames at equal distances
    trace: str  # checksums of the steps up to steps at equal distances


class Lock(NamedTuple):
    """The content of a lock file."""

    facts: Mapping  # options, versions, files, mean_return
    episodes: Sequence[LockedEpisode]

    def text(self) -> str:
        """Return the text of the lock file."""
        rows = [" ".join(map(str, episode)) for episode in self.episodes]
        facts = json.dumps(self.facts, indent=1, sort_keys=True)
        text = "".join(f"{line}\n" for line in (_HEAD, facts, *rows))
        return f"{text}sha256 {_sha256(text)}\n"


def read_lock(path: str) -> Lock:
    """Return the content of a lock file. Raises GoalreelError if it cannot be used."""
    again = "write it again: snakemake lock"
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        problem = f"{quoted(path)} cannot be read ({error.strerror})"
        raise OptionError("check.file", f"{problem}. Write it: snakemake lock") from None
    content, _, digest = text.rpartition("sha256 ")
    head, _, rest = content.partition("\n")
    if head != _HEAD and head.startswith("goalreel lock "):
        problem = f"Has the format {quoted(head)} instead of {_HEAD!r}"
        raise GoalreelError(f"{path}: {problem}. Use the goalreel that wrote it, or {again}")
    if digest.strip() != _sha256(content):
        problem = "Edited or damaged (checksum mismatch)"
        raise GoalreelError(f"{path}: {problem}. Restore it, or {again}")
    facts, _, rows = rest.partition("\n}\n")
    if not rows:
        raise GoalreelError(f"{path}: Holds no episodes. Lock a run that plays at least one.")
    fields = (row.split(" ") for row in rows.splitlines())
    episodes = [LockedEpisode(int(a), int(b), float(c), *more) for a, b, c, *more in fields]
    return Lock(json.loads(facts + "}"), episodes)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
