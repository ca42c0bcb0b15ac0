"""The names of shards and of their files."""

from pathlib import Path


def shard_name(shard: int) -> str:
    """Return a shard's name, which is its wildcard too: 00000, 00001, ..."""
    return f"{shard:05d}"


def shard_paths(first: Path, count: int) -> list[Path]:
    """Return the files of all shards, given that of shard 0; the others stand beside it.

    A rule cannot name a thousand files in its command: Linux limits an argument to 128 kB.
    """
    return [first.with_name(shard_name(shard) + first.suffix) for shard in range(count)]
