"""Films that cannot be, told from the configuration before anything is made."""

from collections.abc import Iterator, Mapping

from goalreel.encoding.choice import cards, choose
from goalreel.mp4.reader import MOST_FRAMES


def film_faults(config: Mapping) -> Iterator[str]:
    """Tell of films that cannot be: parts that cut a shard, a file of too many frames."""
    per_file, size = config["film"]["reaches_per_file"], config["shard_size"]
    if per_file is not None and per_file % size:
        near = max(per_file // size, 1) * size
        yield (
            f"film.reaches_per_file: {per_file} cuts a shard in two; allowed with shard_size "
            f"{size}: its multiples, such as {near}, or null"
        )
        return
    # An episode has a step at least, so two frames, and its card.
    least = cards(config, choose(config)) + 2
    held = config["reaches"] if per_file is None else min(per_file, config["reaches"])
    if held * least > MOST_FRAMES:
        yield (
            f"film.reaches_per_file: {'null' if per_file is None else per_file} asks for a file of "
            f"{held:,} reaches, at least {held * least:,} frames with their title cards, and a "
            f"file holds up to {MOST_FRAMES:,}; allowed: up to {MOST_FRAMES // least}"
        )
