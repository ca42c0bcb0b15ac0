"""The configuration: what the user wrote, checked against config.schema.yaml and completed by it.

The schema is the one place that knows the options, their ranges and defaults; this module knows
how to apply it and how to tell what is wrong. Which stage uses which option stands in stages.
"""

import difflib
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from goalreel.errors import GoalreelError

_TYPE_NAMES = {
    "integer": "a whole number",
    "number": "a number",
    "string": "a text",
    "object": "a mapping such as {name: value}",
    "null": "null",
}


def load_config(given: Mapping, schema_path: Path) -> dict:
    """Return the complete configuration for what the user gave.

    Raises GoalreelError that lists every fault: unknown keys, wrong types, values out of range,
    a policy that does not fit its environment.
    """
    import yaml
    from jsonschema import Draft202012Validator

    schema = yaml.safe_load(schema_path.read_text(encoding="utf-8"))
    config = _typed(dict(given), schema)
    faults = [
        fault
        for error in sorted(
            Draft202012Validator(schema).iter_errors(config), key=lambda e: list(map(str, e.path))
        )
        for fault in _messages(error)
    ]
    if not faults:
        config = _completed(config, schema)
        faults = list(_policy_faults(config, given, schema))
    if faults:
        head = "a fault" if len(faults) == 1 else f"{len(faults)} faults"
        lines = "".join(f"\n  {fault}" for fault in faults)
        raise GoalreelError(f"the configuration has {head}:{lines}")
    return config


def _typed(value: object, schema: Mapping) -> object:
    """Turn text into the schema's type where it can be read so.

    Values nested on the command line (--config 'encode={qp: 31}') reach a workflow as text, and
    YAML reads 1e3 as a float. What cannot be read so is left for the validator to refuse.
    """
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if "object" in types and isinstance(value, Mapping):
        known = schema.get("properties", {})
        return {key: _typed(inner, known.get(key, {})) for key, inner in value.items()}
    if isinstance(value, str) and "string" not in types:
        if "null" in types and value.strip().lower() in ("null", "~", "none", ""):
            return None
        for kind, convert in (("integer", int), ("number", float)):
            if kind in types:
                try:
                    return convert(value)
                except ValueError:
                    continue
    if isinstance(value, float) and "integer" in types and value.is_integer():
        return int(value)
    return value


def _completed(value: Mapping, schema: Mapping) -> dict:
    """Fill in the defaults and put the keys in the schema's order."""
    fits = schema.get("x-fits")  # a policy's parameters depend on its name: see _policy_faults
    complete = {}
    for key, inner in schema["properties"].items():
        if inner.get("type") == "object":
            complete[key] = _completed(value.get(key, {}), inner)
        elif key in value:
            complete[key] = value[key]
        elif not fits or key == "name":
            complete[key] = inner["default"]
    return complete


def _policy_faults(config: dict, given: Mapping, schema: Mapping) -> Iterator[str]:
    """Yield what does not fit, and fill in the defaults of the parameters that do."""
    section = schema["properties"]["policy"]
    policy, env = config["policy"], config["env"]
    name, fits = policy["name"], section["x-fits"][policy["name"]]
    if env not in fits:
        able = [other for other, envs in section["x-fits"].items() if env in envs]
        yield f"policy.name: {name!r} does not play {env}; allowed there: {', '.join(able)}"
        return
    for key in policy:
        if key != "name" and key not in fits[env]:
            yield (
                f"policy.{key}: {name!r} has no such parameter in {env}; "
                f"it takes {', '.join(fits[env])}"
            )
    for key in fits[env]:
        policy.setdefault(key, section["properties"][key]["default"])


def _messages(error) -> Iterator[str]:
    """Yield one line for each thing that a validation error says."""
    path, schema = ".".join(map(str, error.path)), error.schema
    if error.validator == "additionalProperties":
        known = list(schema["properties"])
        for key in error.instance:
            if key not in known:
                yield f"{_join(path, key)}: unknown key{_nearest(str(key), known)}"
    elif error.validator == "type":
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        wanted = " or ".join(_TYPE_NAMES[kind] for kind in types)
        yield f"{path}: {error.instance!r} is {_kind(error.instance)}; allowed: {wanted}"
    elif error.validator == "enum":
        allowed = ", ".join(schema["enum"])
        nearest = _nearest(str(error.instance), schema["enum"])
        yield f"{path}: unknown value {error.instance!r}{nearest or f'; allowed: {allowed}'}"
    elif error.validator == "pattern":
        yield (
            f"{path}: {error.instance!r} holds '{{' or '}}', which Snakemake reads as wildcards; "
            f"choose another name for the folder"
        )
    elif error.validator == "minLength":
        yield f"{path}: {error.instance!r} is empty; allowed: the name of a folder"
    else:
        yield f"{path}: {error.instance!r} is out of range; allowed: {_range(schema)}"


def _join(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    names = {dict: "a mapping", list: "a list", str: "a text", type(None): "null"}
    return names.get(type(value), "a fraction" if isinstance(value, float) else "a number")


def _nearest(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]!r}? (allowed: {', '.join(known)})"
    return f"; allowed: {', '.join(known)}"


def _range(schema: Mapping) -> str:
    if "exclusiveMinimum" in schema:
        return f"more than {schema['exclusiveMinimum']}, up to {schema.get('maximum', math.inf)}"
    return f"{schema['minimum']} to {schema['maximum']}"
