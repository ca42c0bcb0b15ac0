"""Captions: templates over an episode's own columns, such as "Reach {reach} · seed {seed}".

`check_template` validates a template and `caption` fills it. A caption depends only on its episode,
so that more episodes or other shards change no frame.
"""

import re
import string
from collections.abc import Mapping

from goalreel.errors import GoalreelError, quoted, unknown

# Values that fill a template when it is checked.
_SAMPLE = {
    **{"reach": 17, "attempt": 0, "seed": 3249930381360904, "env": "MountainCar-v0"},
    **{"initial_position": -0.5, "steps": 115, "return": -115.0},
    **{"terminated": True, "truncated": False, "reached": True},
    **{"episode": 17, "outcome": "terminated", "info": "return_agent_0 1"},
}
COLUMNS = tuple(_SAMPLE)
# The characters of captions that Pillow's font has, which a test checks.
CHARACTERS = "".join(map(chr, range(32, 127))) + "·°…"
_MAX_CHARS = 300  # characters of a template, more than a frame can show


def check_template(template: str) -> None:
    """Raise GoalreelError if a caption's template is not valid."""
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError as error:
        problem = f"{quoted(template)} is not a template ({error})"
        raise GoalreelError(f"{problem}. Write {{{{ and }}}} for literal braces.") from None
    for _, name, width, _ in parts:
        if name is not None and name not in COLUMNS:
            raise GoalreelError(unknown("field", name, COLUMNS))
        if "{" in (width or ""):
            place = f"'{{{name}:{width}}}'"
            raise GoalreelError(f"{place} has a field in its width. Write a number there.")
    widths = " ".join(width or "" for _, _, width, _ in parts)
    if len(template) > _MAX_CHARS or re.search(r"\d{4}", widths):
        fix = f"Use at most {_MAX_CHARS} characters, and widths below 1000."
        raise GoalreelError(f"{quoted(template)} is too long. {fix}")
    try:
        shown = template.format_map(_SAMPLE)
    except (ValueError, TypeError, LookupError, OverflowError) as error:
        problem = f"{quoted(template)} cannot be formatted ({error})"
        raise GoalreelError(f"{problem}. Change the format of the field.") from None
    if missing := sorted(set(shown) - set(CHARACTERS)):
        raise GoalreelError(f"The font has no {missing[0]!r}. Use ASCII characters and ·, ° or ….")


def caption(template: str, row: Mapping[str, object], env: str, unit: str) -> str:
    """Return the caption of an episode. row: its columns in the tables."""
    more = {"env": env, "episode": row["reach"], "outcome": outcome(row, unit)}
    more["info"] = " · ".join(f"{name} {value:.4g}" for name, value in row["info"].items())
    return template.format_map({**row, **more})


def outcome(row: Mapping[str, object], unit: str) -> str:
    """Return how an episode ended: terminated or truncated, or with reaches, reached or failed.

    An episode is "stopped" if its recording ends before the environment ends it.
    """
    if unit == "reach":
        return "reached" if row["reached"] else "failed"
    endings = (ending for ending in ("terminated", "truncated") if row[ending])
    return next(endings, "stopped")


def default_captions(unit: str) -> tuple[str, str]:
    """Return the default captions of a film's episode and of a grid's cell."""
    if unit == "reach":
        return "Reach {reach} · seed {seed} · {steps} steps", "Reach {reach} · {steps} steps"
    first = "Episode {episode} · "
    return first + "seed {seed} · {steps} steps · return {return:g}", first + "return {return:g}"
