"""The JSON schema of the options, and the error messages of their values."""

import functools
from collections.abc import Iterator, Mapping

from pydantic import ValidationError
from pydantic.json_schema import GenerateJsonSchema

from goalreel.configuration.options import Options
from goalreel.errors import GoalreelError, not_allowed, quoted, suggest, use

_UNKNOWN = ("extra_forbidden", "invalid_key")


class _Generator(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Mapping) -> bool:
        return False


@functools.cache
def schema() -> dict:
    """Return the JSON schema of all options. config.schema.yaml adds their descriptions."""
    made = Options.model_json_schema(schema_generator=_Generator)
    models = made.pop("$defs") | {"Options": made}
    for model in models.values():
        del model["title"]
    return {"$schema": GenerateJsonSchema.schema_dialect, **_inlined(made, models)}


def allowed(option: Mapping) -> str:
    """Return the allowed values of an option in Markdown."""
    *parts, last = _allowed_parts(option)
    return f"{', '.join(parts)} or {last}" if parts else last


def words_of(option: Mapping) -> list[str]:
    """Return the words that an option allows."""
    parts = (option, *option.get("anyOf", ()))
    return [word for part in parts for word in part.get("enum", ()) if word is not None]


def _inlined(node: object, models: Mapping) -> object:
    """Return a part of a schema with its models inlined and an optional type as a list."""
    if isinstance(node, list):
        return [_inlined(part, models) for part in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        node = models[node["$ref"].rpartition("/")[2]] | node
    node = {key: _inlined(part, models) for key, part in node.items() if key != "$ref"}
    if isinstance(node.get("description"), str):
        node["description"] = " ".join(node["description"].split())
    match node.get("anyOf"):
        case [{"type": str(kind)} as option, {"type": "null"}]:
            words = {"enum": [*option["enum"], None]} if "enum" in option else {}
            del node["anyOf"]
            node = option | {"type": [kind, "null"]} | words | node
    return node


def _allowed_parts(option: Mapping) -> list[str]:
    if "anyOf" in option:
        return [part for inner in option["anyOf"] for part in _allowed_parts(inner)]
    kinds = [option["type"]] if isinstance(option["type"], str) else option["type"]
    null = ["`null`"] if "null" in kinds else []
    if "title" in option:
        return [option["title"], *null]
    if "enum" in option:
        return [*(f"`{word}`" for word in words_of(option)), *null]
    if "array" in kinds:
        which = " of different values" if option.get("uniqueItems") else ""
        return [f"a list{which}, each {allowed(option['items'])}", *null]
    limits = f"from {option.get('minimum')} to {option.get('maximum')}"
    if "exclusiveMinimum" in option:
        limits = f"above {option['exclusiveMinimum']}, up to {option['maximum']}"
    whole = f"a multiple of {option['multipleOf']}" if "multipleOf" in option else "an integer"
    words = {"integer": [f"{whole} {limits}"], "number": [f"a number {limits}"], "null": null}
    words |= {"boolean": ["`true`", "`false`"], "object": ["a mapping such as {name: value}"]}
    return [part for kind in kinds for part in words[kind]]


def read_options(user_options: Mapping) -> tuple[dict, dict[str, str]]:
    """Return the complete options, with defaults instead of wrong ones, and the errors by key."""
    try:
        return Options.model_validate(user_options).model_dump(), {}
    except ValidationError as error:
        details = error.errors(include_url=False)
    errors: dict[str, str] = {}
    kept = {key: value for key, value in user_options.items() if key in Options.model_fields}
    for option, found in _by_option(details).items():
        for key, message in _messages(found, user_options, option):
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
    # A line break in a key is escaped.
    lines = [f"{repr(key)[1:-1]}: {message}" for key, message in errors.items()]
    if len(lines) == 1:
        return GoalreelError(lines[0])
    lines = [line.replace("\n", "\n  ") for line in lines]
    return GoalreelError("\n  ".join([f"The configuration has {len(lines)} errors:", *lines]))


def _by_option(errors: list[Mapping]) -> dict[tuple, list[Mapping]]:
    """Return pydantic's errors by option: a key, or the keys of a section and an option."""
    found: dict[tuple, list[Mapping]] = {}
    for error in errors:
        field = Options.model_fields.get(error["loc"][0])
        is_section = field is not None and hasattr(field.annotation, "model_fields")
        found.setdefault(error["loc"][: 1 + is_section], []).append(error)
    return found


def _messages(errors: list[Mapping], value: object, option: tuple) -> Iterator[tuple[str, str]]:
    """Yield (key, message) for the errors of an option, which may have several types."""
    places = [_place(error, value) for error in errors]
    # Report the type that matches the value's, if there is one.
    fitting = [i for i, error in enumerate(errors) if places[i] != option or not _is_of_type(error)]
    for i in fitting or [0]:
        yield ".".join(map(str, places[i])), _message(errors[i], places[i])


def _place(error: Mapping, value: object) -> tuple:
    """Return the keys and indices of an error's location, without pydantic's names of types."""
    *parts, last = error["loc"]
    place = []
    for part in parts if error["type"] in _UNKNOWN else error["loc"]:
        if isinstance(part, int) or (isinstance(value, Mapping) and part in value):
            place.append(part)
            value = value[part]
    return (*place, last) if error["type"] in _UNKNOWN else tuple(place)


def _is_of_type(error: Mapping) -> bool:
    """Return whether an error is about the type of a value."""
    kind = error["type"]
    others = ("none_required", "finite_number", "string_unicode")
    is_word = isinstance(error["input"], str)
    return kind.endswith("_type") or kind in others or (kind == "literal_error" and not is_word)


def _message(error: Mapping, place: tuple) -> str:
    kind, value = error["type"], error["input"]
    if kind in _UNKNOWN:
        known = _part(_schema_of(place[:-1]), "properties")
        return f"Unknown option. {suggest(place[-1], known) or use(known)}"
    if kind == "value_error":  # the message of a check of goalreel's own
        return str(error["ctx"]["error"])
    option = _schema_of(place)
    is_word = kind == "literal_error" and isinstance(value, str)
    if is_word and (hint := suggest(value, words_of(option))):
        return f"Unknown value {quoted(value)}. {hint}"
    keys = error.get("ctx", {}).get("keys")
    parts = [part.replace("`", "") for part in _allowed_parts(option) if part != "`null`"]
    return not_allowed(value, [keys] if keys else parts)


def _schema_of(place: tuple) -> Mapping:
    """Return the schema of an option, or of a part of it."""
    found = schema()
    for part in place:
        is_item = isinstance(part, int)
        found = _part(found, "items") if is_item else _part(found, "properties")[part]
    return found


def _part(option: Mapping, name: str) -> Mapping:
    """Return the items or the properties of the type that has them."""
    return next(part[name] for part in (option, *option.get("anyOf", ())) if name in part)
