"""The options in words: config.schema.yaml, the page of all options, the values that each allows.

To write the schema again: PYTHONPATH=scripts python -m goalreel.configuration.schema
"""

import ast
import functools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml
from pydantic.json_schema import GenerateJsonSchema

from goalreel.configuration import options
from goalreel.configuration.options import Options

_TOP = """\
# Generated from scripts/goalreel/configuration/options.py, which defines the options, by
# PYTHONPATH=scripts python -m goalreel.configuration.schema
# A `title` says in words which values are allowed, where type and range do not.
"""
_HEAD = "| Option | Default | Allowed | Meaning |\n|---|---|---|---|"


class _Generator(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Mapping) -> bool:
        return False


@functools.cache
def schema() -> dict:
    """Return the JSON schema of all options, each with its description."""
    made = Options.model_json_schema(schema_generator=_Generator)
    models = made.pop("$defs") | {"Options": made}
    for node in ast.parse(Path(options.__file__).read_bytes()).body:
        body = node.body if isinstance(node, ast.ClassDef) else []
        for option, text in zip(body, body[1:], strict=False):
            if isinstance(option, ast.AnnAssign) and isinstance(text, ast.Expr):
                field = models[node.name]["properties"][option.target.id]
                field["description"] = text.value.value
    for model in models.values():
        del model["title"]
    complete = _inlined(made, models)
    return {"$schema": GenerateJsonSchema.schema_dialect, **complete}


def schema_file() -> str:
    """Return the text of config.schema.yaml."""
    return _TOP + yaml.safe_dump(schema(), sort_keys=False, allow_unicode=True, width=100)


def options_page() -> str:
    """Return the Markdown of all options: a heading and a table for each section."""
    properties = schema()["properties"]
    top = {key: option for key, option in properties.items() if "properties" not in option}
    page = f"## General\n\n{_HEAD}\n" + "".join(_rows("", top))
    for section, option in properties.items():
        if section not in top:
            rows = "".join(_rows(f"{section}.", option["properties"]))
            page += f"\n## {section}\n\n{option['description']}\n\n{_HEAD}\n{rows}"
    return page


def allowed(option: Mapping) -> str:
    """Return which values an option takes, in Markdown."""
    *parts, last = _allowed_parts(option)
    return f"{', '.join(parts)} or {last}" if parts else last


def words_of(option: Mapping) -> list[str]:
    """Return the words that an option takes, of all its alternatives."""
    parts = (option, *option.get("anyOf", ()))
    return [word for part in parts for word in part.get("enum", ()) if word is not None]


def _inlined(node: object, models: Mapping) -> object:
    """Return a part of a schema with its models in it, and `null` beside a lone other type."""
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
        case [{"type": str(kind)} as one, {"type": "null"}]:
            words = {"enum": [*one["enum"], None]} if "enum" in one else {}
            del node["anyOf"]
            node = one | {"type": [kind, "null"]} | words | node
    return node


def _rows(prefix: str, properties: Mapping[str, Mapping]) -> Iterator[str]:
    for key, option in properties.items():
        default = option["default"]
        if not isinstance(default, str):
            default = json.dumps(default)
        cells = f"`{prefix}{key}`", f"`{default}`", allowed(option), option["description"]
        yield f"| {' | '.join(cells)} |\n"


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
    words = {
        **{"integer": [f"an {'even ' if 'multipleOf' in option else ''}integer {limits}"]},
        **{"number": [f"a number {limits}"], "null": null, "boolean": ["`true`", "`false`"]},
        **{"object": ["a mapping such as {name: value}"]},
    }
    return [part for kind in kinds for part in words[kind]]


if __name__ == "__main__":
    print(schema_file(), end="")
