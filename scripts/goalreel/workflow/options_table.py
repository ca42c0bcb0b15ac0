"""The options in words, from config.schema.yaml: which values each takes, and a page of them."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

_HEAD = "| Option | Default | Allowed | Meaning |\n|---|---|---|---|"


def options_page(schema_path: Path) -> str:
    """Return the Markdown of all options: a heading and a table for each section."""
    options = yaml.safe_load(schema_path.read_text(encoding="utf-8"))["properties"]
    top = {key: option for key, option in options.items() if "properties" not in option}
    page = f"## General\n\n{_HEAD}\n" + "".join(_rows("", top))
    for section, option in options.items():
        if section not in top:
            rows = "".join(_rows(f"{section}.", option["properties"]))
            page += f"\n## {section}\n\n{option['description']}\n\n{_HEAD}\n{rows}"
    return page


def allowed(schema: Mapping) -> str:
    """Return which values an option takes, in Markdown."""
    *parts, last = _allowed_parts(schema)
    return f"{', '.join(parts)} or {last}" if parts else last


def words_of(option: Mapping) -> list[str]:
    """Return the words that an option takes, of all its alternatives."""
    words = [w for part in (option, *option.get("anyOf", ())) for w in part.get("enum", ())]
    return ["null" if word is None else word for word in words]


def _rows(prefix: str, options: Mapping[str, Mapping]) -> Iterator[str]:
    for key, option in options.items():
        default = option["default"]
        if not isinstance(default, str):
            default = json.dumps(default)
        cells = f"`{prefix}{key}`", f"`{default}`", allowed(option), option["description"]
        yield f"| {' | '.join(cells)} |\n"


def _allowed_parts(schema: Mapping) -> list[str]:
    if "title" in schema:
        return [schema["title"]]
    if "anyOf" in schema:
        return [part for inner in schema["anyOf"] for part in _allowed_parts(inner)]
    if "enum" in schema:
        return [f"`{word}`" for word in words_of(schema)]
    limits = f"from {schema.get('minimum')} to {schema.get('maximum')}"
    if "exclusiveMinimum" in schema:
        limits = f"above {schema['exclusiveMinimum']}, up to {schema['maximum']}"
    words = {
        **{"integer": f"an {'even ' if 'multipleOf' in schema else ''}integer {limits}"},
        **{"number": f"a number {limits}", "null": "`null`", "boolean": "`true` or `false`"},
        **{"string": "a string", "object": "a mapping such as {name: value}"},
    }
    if schema["type"] == "array":
        which = " of different values" if schema.get("uniqueItems") else ""
        return [f"a list{which}, each {allowed(schema['items'])}"]
    kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    return [words[kind] for kind in kinds]
