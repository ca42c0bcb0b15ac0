"""The faults of a configuration in words: the key, the value, what is allowed, the nearest name."""

import json
import math
from collections.abc import Iterator, Mapping

from jsonschema import Draft202012Validator, FormatChecker, ValidationError
from jsonschema.validators import extend

from goalreel.errors import GoalreelError, nearest
from goalreel.pictures.captions import check_template
from goalreel.training.games.settings import family_of
from goalreel.workflow.options_table import allowed, words_of

_MOST_LEVELS = 20
_LONGEST = 300  # characters of a value that a message repeats
_TYPES = {str: "a string", bool: "a boolean", int: "an integer", dict: "a mapping", list: "a list"}


def _is_finite(_: object, value: object) -> bool:
    """Tell whether a value is a number; JSON has neither NaN nor infinity."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and (isinstance(value, int) or math.isfinite(value))


_FORMATS = FormatChecker(formats=())
_FORMATS.checks("caption", GoalreelError)(check_template)
_FORMATS.checks("game", GoalreelError)(lambda game: game is None or family_of(game))
_VALIDATOR = extend(
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("number", _is_finite),
)


def check_depth(config: Mapping) -> None:
    """Raise GoalreelError for values that are nested so deep that other checks may not end."""
    for key, value in config.items():
        level = [value]
        for _ in range(_MOST_LEVELS):
            level = [v for v in level if isinstance(v, Mapping | list)]
            level = [part for v in level for part in (v.values() if isinstance(v, Mapping) else v)]
        if level:
            raise config_error(
                {str(key): f"nested too deep; allowed: {_MOST_LEVELS} levels of lists and mappings"}
            )


def config_error(faults: Mapping[str, str]) -> GoalreelError:
    """Return the error that lists all faults, given by their keys."""
    count = "a fault" if len(faults) == 1 else f"{len(faults)} faults"
    lines = "".join(f"\n  {key}: {message}" for key, message in faults.items())
    return GoalreelError(f"the configuration has {count}:{lines}")


def schema_faults(config: Mapping, schema: Mapping) -> dict[str, str]:
    """Return what is wrong with each key that does not fit the JSON schema, in the keys' order."""
    errors = _VALIDATOR(schema, format_checker=_FORMATS).iter_errors(config)
    faults: dict[str, str] = {}
    for error in sorted(errors, key=lambda error: list(map(str, error.path))):
        for key, message in _messages(error, error.schema):
            faults.setdefault(key, message)
    return faults


def _messages(error: ValidationError, option: Mapping) -> Iterator[tuple[str, str]]:
    """Yield (key, what is wrong) for each fault in a validation error.

    option: the schema whose values are allowed: the error's own, or of what it is one alternative
    """
    key, schema = ".".join(map(str, error.absolute_path)), error.schema
    value = _shown(error.instance)
    if error.validator == "additionalProperties":
        known = list(schema["properties"])
        for name in error.instance:
            if name not in known:
                hint = f"unknown key{nearest(name, known)}; allowed: {', '.join(known)}"
                yield f"{key}.{name}" if key else str(name), hint
        return
    if error.validator == "anyOf":
        alternatives: dict[int, list[ValidationError]] = {}
        for inner in error.context:
            alternatives.setdefault(inner.schema_path[0], []).append(inner)
        for errors in alternatives.values():  # explain the one that is of the value's type
            if not any(inner.validator == "type" and not inner.path for inner in errors):
                for inner in errors:
                    yield from _messages(inner, inner.schema if inner.path else schema)
                return
    if error.validator in ("oneOf", "required"):
        names = [name for part in schema.get("oneOf", [schema]) for name in part["required"]]
        if error.instance.keys() <= schema["properties"].keys():  # others are faults themselves
            yield key, f"{value} does not fit; allowed: exactly one of the keys {', '.join(names)}"
        return
    what = {
        **{"enum": f"unknown value {value}{nearest(error.instance, words_of(option))}"},
        **{
            "format": str(error.cause).removeprefix("game: "),
            "minItems": f"{value} is {'too short' if error.instance else 'empty'}",
        },
        **{"uniqueItems": f"{value} has duplicates", "minLength": f"{value} is empty"},
        **{"multipleOf": f"{value} is odd", "const": f"{value} does not fit"},
        **{"pattern": f"{value} does not fit"},
        **dict.fromkeys(("type", "anyOf"), f"{value} is {_type(error.instance)}"),
    }.get(error.validator, f"{value} is out of range")
    if error.validator != "format":  # which says itself what is allowed
        what += f"; allowed: {allowed(option).replace('`', '')}"
    yield key, what


def _shown(value: object) -> str:
    """Return a value as YAML writes it, strings in quotes; one that is long is cut short."""
    try:
        if isinstance(value, bool | dict | list | None):
            shown = json.dumps(value, ensure_ascii=False, default=str)
        else:
            shown = repr(value)
    except TypeError:  # keys of a mapping that JSON has not, as dates
        shown = repr(value)
    except ValueError:  # an integer of thousands of digits
        return "a value too long to be shown"
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."


def _type(value: object) -> str:
    if isinstance(value, float):
        return "a decimal number" if math.isfinite(value) else "not a finite number"
    return "not allowed" if value is None else _TYPES.get(type(value), f"a {type(value).__name__}")
