"""The lock file: the behavior of a policy as a small text file to commit.

Its lines have these forms:

    goalreel lock 1             the version of this format
    option KEY JSON             an option that affects the episodes or their frames
    version NAME VERSION        of a package
    file PATH SHA256            of a file of the policy or the environment
    mean_return INTERVAL        for readers, as are comments
    stride STEPS                the distance between the checksums of a trace
    SEED STEPS RETURN ENDING ACTIONS OBSERVATIONS REWARDS FRAMES TRACE
                                an episode, with the checksums of goalreel.verification.behavior
    sha256 SHA256               of the lines above

The Snakefile imports this module, so it does not import NumPy.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from goalreel.errors import GoalreelError, OptionError, quoted

_HEAD = "goalreel lock 1"
_PURPOSE = "# snakemake lock writes this file, and snakemake check compares new episodes with it."
_COLUMNS = "# seed steps return ending actions observations rewards frames trace"


@dataclass(frozen=True)
class LockedEpisode:
    """The behavior of an episode."""

    seed: int
    steps: int
    return_: float  # ten digits
    ending: str
    actions: str  # checksums of all steps
    observations: str
    rewards: str
    frames: str  # checksums of frames at equal distances
    trace: str  # checksums of the steps up to the end of each stride


@dataclass(frozen=True)
class Lock:
    """The content of a lock file."""

    options: Mapping[str, object]  # by dotted key
    versions: Mapping[str, str]
    files: Mapping[str, str]  # sha256 by path
    mean_return: str
    stride: int
    episodes: Sequence[LockedEpisode]

    def text(self) -> str:
        """Return the text of the lock file."""
        lines = [_HEAD, _PURPOSE]
        options = {key: json.dumps(value, sort_keys=True) for key, value in self.options.items()}
        parts = {"option": options, "version": self.versions, "file": self.files}
        lines += [f"{kind} {k} {part[k]}" for kind, part in parts.items() for k in sorted(part)]
        lines += [f"mean_return {self.mean_return}", f"stride {self.stride}", _COLUMNS]
        lines += [" ".join(map(str, astuple(episode))) for episode in self.episodes]
        text = "".join(f"{line}\n" for line in lines)
        return f"{text}sha256 {_sha256(text)}\n"


def read_lock(path: str) -> Lock:
    """Return the content of a lock file.

    Raises GoalreelError if there is none, or if it is damaged or has another format.
    """
    again = "write it again: snakemake lock"
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        problem = f"{quoted(path)} cannot be read ({error.strerror})"
        raise OptionError("check.file", f"{problem}. Write it: snakemake lock") from None
    content, _, digest = text.rpartition("sha256 ")
    lines = content.splitlines()
    if lines[:1] != [_HEAD] and text.startswith("goalreel lock "):
        version = quoted(text.splitlines()[0])
        problem = f"Has the format {version} instead of {_HEAD!r}"
        raise GoalreelError(f"{path}: {problem}. Use the goalreel that wrote it, or {again}")
    if digest.strip() != _sha256(content):
        problem = "Edited or damaged (checksum mismatch)"
        raise GoalreelError(f"{path}: {problem}. Restore it, or {again}")
    parts: dict[str, dict[str, str]] = {"option": {}, "version": {}, "file": {}}
    facts, episodes = {}, []
    for line in lines:
        kind, _, rest = line.partition(" ")
        if kind in parts:
            name, _, value = rest.partition(" ") if kind == "option" else rest.rpartition(" ")
            parts[kind][name] = value
        elif kind.isdigit():
            seed, steps, return_, *words = line.split(" ")
            episodes.append(LockedEpisode(int(seed), int(steps), float(return_), *words))
        else:
            facts[kind] = rest
    if not episodes:
        raise GoalreelError(f"{path}: Holds no episodes. Lock a run that plays at least one.")
    options = {key: json.loads(value) for key, value in parts["option"].items()}
    mean, stride = facts["mean_return"], int(facts["stride"])
    return Lock(options, parts["version"], parts["file"], mean, stride, episodes)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
