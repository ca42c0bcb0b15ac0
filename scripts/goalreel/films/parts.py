"""Films in parts: which reaches are in which file, where one file would be too large.

A part is a film of `film.reaches_per_file` reaches, whole shards of them, or of what is left.
Imported while the Snakefile is parsed, so without NumPy.
"""

from dataclasses import dataclass

from goalreel.films.shards import shard_name

WHOLE = "film.mp4"


@dataclass(frozen=True)
class Part:
    """A part of the film."""

    first: int  # its first reach
    end: int  # the reach after its last

    def shards(self, shard_size: int) -> range:
        """Return the numbers of its shards."""
        return range(self.first // shard_size, -(-self.end // shard_size))


def parts_of(reaches: int, per_file: int) -> list[Part]:
    """Return the parts of a run of so many reaches."""
    firsts = range(0, reaches, per_file)
    return [Part(first, min(first + per_file, reaches)) for first in firsts]


def film_file(reach: int, per_file: int | None) -> str:
    """Return the film that shows a reach, by its path in the results; parts are named as shards."""
    return WHOLE if per_file is None else f"films/{shard_name(reach // per_file)}.mp4"
