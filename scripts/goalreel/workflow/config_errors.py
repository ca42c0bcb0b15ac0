"""Faults of a configuration in words: the key, the value, what is allowed, the nearest name."""

import difflib
import json
import math
from collections.abc import Mapping

from goalreel.errors import GoalreelError

_MOST_LEVELS = 20
_LONGEST = 300  # characters of a value that a message repeats
_TYPE_NAMES = {
    "integer": "a whole number",
    "number": "a number",
    "string": "a text",
    "object": "a mapping such as {name: value}",
    "boolean": "true or false",
    "array": "a list",
    "null": "null",
}


def check_depth(config: Mapping) -> None:
    """Raise GoalreelError for values that are nested so deep that other checks may not end."""
    for key, value in config.items():
        level = [value]
        for _ in range(_MOST_LEVELS):
            level = [v for v in level if isinstance(v, Mapping | list)]
            level = [part for v in level for part in (v.values() if isinstance(v, Mapping) else v)]
        if level:
            raise GoalreelError(
                f"the configuration has a fault:\n  {key}: nested too deep; allowed: "
                f"{_MOST_LEVELS} levels of lists and mappings"
            )


def schema_faults(config: Mapping, schema: Mapping) -> list[str]:
    """Return one line per key that does not fit the JSON schema, in the order of the keys."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    types = Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_whole)
    checks = {"x-words": _words, "x-one-of": _one_of}
    validator = extend(Draft202012Validator, checks, type_checker=types)
    faults: dict[str, str] = {}
    errors = validator(schema).iter_errors(config)
    for error in sorted(errors, key=lambda error: list(map(str, error.path))):
        for key, said in _told(error):
            faults.setdefault(key, f"{key}: {said}")
    for key, value in _infinite("", config):
        faults[key] = f"{key}: {value} is no number to work with; allowed: a finite one"
    return list(faults.values())


def _is_whole(checker, value: object) -> bool:
    """Tell whether a value is a whole number as Python counts: 30.0 is none."""
    return isinstance(value, int) and not isinstance(value, bool)


def _words(validator, words: list[str], value: object, schema: Mapping):
    """Check the texts that an option takes beside its other types."""
    from jsonschema import ValidationError

    if isinstance(value, str) and value not in words:
        yield ValidationError("unknown")


def _one_of(validator, names: list[str], value: object, schema: Mapping):
    """Check a mapping that must hold exactly one of some keys."""
    from jsonschema import ValidationError

    if not isinstance(value, Mapping) or set(value) - set(schema["properties"]):
        return  # an unknown key has its fault already
    if len(named := [name for name in names if name in value]) != 1:
        yield ValidationError(" and ".join(named) or "none")


def _infinite(path: str, value: object) -> list[tuple[str, float]]:
    """Return the keys whose values are NaN or infinite, which pass as numbers in a schema."""
    if isinstance(value, Mapping):
        return [found for k, inner in value.items() for found in _infinite(_join(path, k), inner)]
    return [(path, value)] if isinstance(value, float) and not math.isfinite(value) else []


def _told(error) -> list[tuple[str, str]]:
    """Return (key, what is wrong) for each thing that a validation error says."""
    schema, value = error.schema, error.instance
    key, shown = ".".join(map(str, error.path)), _shown(error.instance)
    if error.validator == "additionalProperties":
        known = list(schema["properties"])
        unknown = [key for key in value if key not in known]
        return [(_join(key, k), f"unknown key{_nearest(str(k), known)}") for k in unknown]
    if error.validator == "type":
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        wanted = " or ".join(_TYPE_NAMES[kind] for kind in types)
        return [(key, f"{shown} is {_kind(value)}; allowed: {wanted}")]
    if error.validator == "enum":
        other = f"; or {schema['x-or']}" if "x-or" in schema else ""
        known = ["null" if word is None else word for word in schema["enum"]]
        return [(key, f"unknown value {shown}{_nearest(str(value), known)}{other}")]
    if error.validator == "pattern":
        return [(key, f"{shown} {schema.get('x-unfit') or _unfit_folder(value)}")]
    if error.validator == "x-words":
        other = f"; or {schema['x-or']}" if "x-or" in schema else ""
        return [(key, f"unknown value {shown}{_nearest(value, schema['x-words'])}{other}")]
    if error.validator == "x-one-of":
        names = ", ".join(schema["x-one-of"])
        return [(key, f"{shown} names {error.message}; allowed: exactly one of {names}")]
    if error.validator in ("minItems", "uniqueItems"):
        what = "is empty" if error.validator == "minItems" else "names a value twice"
        return [(key, f"{shown} {what}; allowed: {schema['x-allowed']}")]
    if error.validator == "minLength":
        return [(key, f"{shown} is empty; allowed: the name of a folder")]
    if error.validator == "multipleOf":
        return [(key, f"{shown} is odd; allowed: an even number, {_range(schema)}")]
    return [(key, f"{shown} is out of range; allowed: {_range(schema)}")]


def _join(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


def _shown(value: object) -> str:
    """Return a value as YAML writes it, texts in quotes; one that is long is cut short."""
    try:
        if isinstance(value, bool | dict | list | None):
            shown = json.dumps(value, ensure_ascii=False, default=str)
        else:
            shown = repr(value)
    except TypeError:  # keys of a mapping that JSON has not, as dates
        shown = repr(value)
    except ValueError:  # a whole number of thousands of digits
        return "a value too long to be shown"
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    names = {int: "a number", float: "a fraction", str: "a text", dict: "a mapping"}
    names |= {list: "a list", type(None): "nothing"}
    return names.get(type(value), f"a {type(value).__name__}")


def _unfit_folder(name: str) -> str:
    if "{" in name or "}" in name:
        why = "holds '{' or '}', which Snakemake reads as wildcards"
    elif name.startswith("-"):
        why = "starts with '-', which programs read as an option"
    elif name.startswith("~"):
        why = "starts with '~', which only a shell replaces by a home folder"
    else:
        why = "holds a character that no file name can have"
    return f"{why}; choose another name for the folder"


def _nearest(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}? (allowed: " if close else "; allowed: "
    return f"{hint}{', '.join(known)}{')' if close else ''}"


def _range(schema: Mapping) -> str:
    if "exclusiveMinimum" in schema:
        return f"more than {schema['exclusiveMinimum']}, up to {schema['maximum']}"
    return f"{schema['minimum']} to {schema['maximum']}"
