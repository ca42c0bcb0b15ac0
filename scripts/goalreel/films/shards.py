"""Name shards and their files."""

from pathlib import Path

from goalreel.errors import GoalreelError


def shard_name(shard: int) -> str:
    """Return the name of a shard, its value of the wildcard `shard`: 00000, 00001, ..."""
    return f"{shard:05d}"


def shard_paths(first: Path, count: int) -> list[Path]:
    """Return the files of `count` shards from the file of the first.

    A command cannot list thousands of files, because Linux limits an argument to 128 kB. Raises
    GoalreelError if `first` is not named after a shard.
    """
    if not (first.stem.isascii() and first.stem.isdecimal()):
        raise GoalreelError(
            f"{first}: Not named after a shard. Use a name such as 00000{first.suffix}."
        )
    start = int(first.stem)
    return [first.with_name(shard_name(start + n) + first.suffix) for n in range(count)]
