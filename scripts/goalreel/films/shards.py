"""The names of shards and of their files."""

from pathlib import Path

from goalreel.errors import GoalreelError


def shard_name(shard: int) -> str:
    """Return a shard's name, which is its wildcard too: 00000, 00001, ..."""
    return f"{shard:05d}"


def shard_paths(first: Path, count: int) -> list[Path]:
    """Return the files of `count` shards, given that of the first.

    A rule cannot name a thousand files in its command: Linux limits an argument to 128 kB. Raises
    GoalreelError if it has no shard's name.
    """
    if not (first.stem.isascii() and first.stem.isdecimal()):
        raise GoalreelError(
            f"{first}: not a shard's file name; allowed: names such as 00000{first.suffix}"
        )
    start = int(first.stem)
    return [first.with_name(shard_name(start + n) + first.suffix) for n in range(count)]
