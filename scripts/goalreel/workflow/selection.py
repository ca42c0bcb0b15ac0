"""Which episodes a run films: so many, so many that reach the goal, or those of given seeds."""

from collections.abc import Mapping, Sequence

from goalreel.environments.registry import describe
from goalreel.policies.minari_files import read_header

CHOICES = ("episodes", "reaches", "seeds")
_REACHES, _EPISODES = 1000, 50  # where the user sets none: of the Mountain Cars, of others


def unit(config: Mapping) -> str:
    """Return what is counted: "reach" or "episode"; config: a complete one."""
    return "reach" if config["reaches"] is not None else "episode"


def seeds(config: Mapping) -> Sequence[int] | None:
    """Return the seeds that the user chose, None for seeds derived from the root seed."""
    chosen = config["seeds"]
    if isinstance(chosen, str):
        first, last = map(int, chosen.split("-"))
        return range(first, last + 1)
    return chosen


def count(config: Mapping) -> int:
    """Return the number of episodes, or of reaches."""
    chosen = seeds(config)
    if chosen is not None:
        return len(chosen)
    return config["reaches"] if unit(config) == "reach" else config["episodes"]


def default(config: Mapping) -> dict[str, int]:
    """Return what is filmed where the user chose nothing.

    Raises GoalreelError for a recording that cannot be read, whose episodes are all filmed.
    """
    if config["policy"]["name"] == "minari":
        return {"episodes": read_header(config["policy"]["dataset"]).episodes}
    if config["policy"]["name"] == "recorded":
        from goalreel.simulation.recording_file import read_recording

        return {"episodes": len(read_recording(config["policy"]["file"]))}
    if describe(config["env"]).is_mountain_car:
        return {"reaches": _REACHES}
    return {"episodes": _EPISODES}
