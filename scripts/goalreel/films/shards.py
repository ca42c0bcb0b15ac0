"""The names of shards and of their files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from goalreel.errors import GoalreelError


def shard_name(shard: int) -> str:
    """Return a shard's name, which is its wildcard too: 00000, 00001, ..."""
    return f"{shard:05d}"


@dataclass(frozen=True)
class ShardPaths(Sequence[Path]):
    """The files of `count` shards in turn, beside `first`, the first one's.

    A path is made when it is asked for: a hundred thousand of them would take 50 MB.
    """

    first: Path
    count: int

    def __len__(self) -> int:
        """Return the number of files."""
        return self.count

    def __getitem__(self, number: int) -> Path:
        """Return a file."""
        shard = int(self.first.stem) + range(self.count)[number]
        return self.first.with_name(shard_name(shard) + self.first.suffix)


def shard_paths(first: Path, count: int) -> ShardPaths:
    """Return the files of `count` shards, given that of the first.

    A rule cannot name a thousand files in its command: Linux limits an argument to 128 kB. Raises
    GoalreelError if it has no shard's name.
    """
    if not (first.stem.isascii() and first.stem.isdecimal()):
        raise GoalreelError(
            f"{first}: not a shard's file name; allowed: names such as 00000{first.suffix}"
        )
    return ShardPaths(first, count)
