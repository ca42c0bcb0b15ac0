"""What is wrong with an option, in words: the key, the value, what is allowed, the nearest name."""

import json
import math
from collections.abc import Iterator, Mapping

from pydantic import ValidationError

from goalreel.configuration.options import Options
from goalreel.configuration.schema import allowed, schema, words_of
from goalreel.errors import GoalreelError, did_you_mean

_LONGEST = 300  # characters of a value that a message repeats
_TYPES = {str: "a string", bool: "a boolean", int: "an integer", dict: "a mapping", list: "a list"}
_UNKNOWN = ("extra_forbidden", "invalid_key")
_PROBLEMS = {
    **{"string_pattern_mismatch": "does not fit", "choice": "does not fit"},
    **{"missing": "does not fit"},
    **{"multiple_of": "is odd", "duplicates": "has duplicates"},
}


def read_options(given: Mapping) -> tuple[dict, dict[str, str]]:
    """Return the complete options, wrong ones at their defaults, and what is wrong by its key."""
    try:
        return Options.model_validate(given).model_dump(), {}
    except ValidationError as error:
        details = error.errors(include_url=False)
    errors: dict[str, str] = {}
    kept = {key: value for key, value in given.items() if key in Options.model_fields}
    for option, found in _by_option(details).items():
        for key, message in _messages(found, given, option):
            errors.setdefault(key, message)
        section, *names = option
        if names and isinstance(kept.get(section), Mapping):
            wrong = str(names[0])
            kept[section] = {key: v for key, v in kept[section].items() if str(key) != wrong}
        else:
            kept.pop(section, None)
    return Options.model_validate(kept).model_dump(), errors


def config_error(errors: Mapping[str, str]) -> GoalreelError:
    """Return the error that lists all errors, given by their keys."""
    count = "an error" if len(errors) == 1 else f"{len(errors)} errors"
    lines = "".join(f"\n  {key}: {message}" for key, message in errors.items())
    return GoalreelError(f"the configuration has {count}:{lines}")


def _by_option(errors: list[Mapping]) -> dict[tuple, list[Mapping]]:
    """Return pydantic's errors by the option that each is of, a key or a section's and a key."""
    found: dict[tuple, list[Mapping]] = {}
    for error in errors:
        top = error["loc"][0]
        field = Options.model_fields.get(top)
        is_section = field is not None and hasattr(field.annotation, "model_fields")
        found.setdefault(error["loc"][: 1 + is_section], []).append(error)
    return found


def _messages(errors: list[Mapping], given: object, option: tuple) -> Iterator[tuple[str, str]]:
    """Yield (key, what is wrong) for an option's errors, those of all its alternative types."""
    places = [_place(error, given) for error in errors]
    # Explain the alternative that is of the value's type, if there is one.
    fitting = [i for i, error in enumerate(errors) if places[i] != option or not _is_of_type(error)]
    for i in fitting or [0]:
        yield ".".join(map(str, places[i])), _message(errors[i], places[i])


def _place(error: Mapping, value: object) -> tuple:
    """Return the keys and indices of an error's place, without pydantic's names of types."""
    *parts, last = error["loc"]
    place = []
    for part in parts if error["type"] in _UNKNOWN else error["loc"]:
        if isinstance(part, int) or (isinstance(value, Mapping) and part in value):
            place.append(part)
            value = value[part]
    return (*place, last) if error["type"] in _UNKNOWN else tuple(place)


def _is_of_type(error: Mapping) -> bool:
    """Return whether an error is that a value has another type than its option."""
    kind = error["type"]
    others = ("none_required", "finite_number", "string_unicode")
    is_word = isinstance(error["input"], str)
    return kind.endswith("_type") or kind in others or (kind == "literal_error" and not is_word)


def _message(error: Mapping, place: tuple) -> str:
    option = _schema_of(place if error["type"] not in _UNKNOWN else place[:-1])
    kind, value = error["type"], error["input"]
    if kind in _UNKNOWN:
        known = _part(option, "properties")
        return f"unknown key{did_you_mean(place[-1], known)}; allowed: {', '.join(known)}"
    if kind == "value_error":  # which says itself what is allowed
        return str(error["ctx"]["error"])
    if kind == "literal_error" and isinstance(value, str):
        what = f"unknown value {_shown(value)}{did_you_mean(value, words_of(option))}"
    elif _is_of_type(error):
        what = f"{_shown(value)} is {_type(value)}"
    elif kind == "too_short":
        what = f"{_shown(value)} is {'too short' if value else 'empty'}"
    else:
        what = f"{_shown(value)} {_PROBLEMS.get(kind, 'is out of range')}"
    keys = error.get("ctx", {}).get("keys")
    return f"{what}; allowed: {keys or allowed(option).replace('`', '')}"


def _schema_of(place: tuple) -> Mapping:
    """Return the schema of an option, or of a value in it."""
    found = schema()
    for part in place:
        is_item = isinstance(part, int)
        found = _part(found, "items") if is_item else _part(found, "properties")[part]
    return found


def _part(option: Mapping, name: str) -> Mapping:
    """Return the items or the properties of the alternative that has them."""
    return next(one[name] for one in (option, *option.get("anyOf", ())) if name in one)


def _shown(value: object) -> str:
    """Return a value as YAML writes it, strings in quotes; one that is long is cut short."""
    try:
        is_json = isinstance(value, bool | dict | list | None)
        shown = json.dumps(value, ensure_ascii=False, default=str) if is_json else repr(value)
    except (TypeError, ValueError, RecursionError):  # as keys that are dates, thousands of digits
        shown = f"a {type(value).__name__}"
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."


def _type(value: object) -> str:
    if isinstance(value, float):
        return "a decimal number" if math.isfinite(value) else "not a finite number"
    return "not allowed" if value is None else _TYPES.get(type(value), f"a {type(value).__name__}")
