"""The names of numbers in states and of actions, from dimension_names.toml."""

import tomllib
from collections.abc import Sequence
from pathlib import Path

_NAMES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def state_names(env: str, width: int) -> Sequence[str]:
    """Return the names of a state's numbers, "dimension 0" and so on if they are unknown."""
    unknown = [f"dimension {number}" for number in range(width)]
    return next((n for n in _names("states", env) if len(n) == width), unknown)


def action_names(env: str) -> Sequence[str]:
    """Return the names of the actions, or of the number that is an action, none if unknown."""
    return _names("actions", env)


def _names(kind: str, env: str) -> Sequence:
    name = env.rpartition(":")[2]
    return next((names for start, names in _NAMES[kind].items() if name.startswith(start)), ())
