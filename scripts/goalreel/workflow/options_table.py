"""The table of options, as Markdown, from config.schema.yaml."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml


def options_table(schema_path: Path) -> str:
    """Return the Markdown table of all options: key, default, allowed values, meaning."""
    schema = yaml.safe_load(schema_path.read_text(encoding="utf-8"))
    rows = [f"| {' | '.join(row)} |" for row in _rows("", schema)]
    return "\n".join(["| Option | Default | Allowed | Meaning |", "|---|---|---|---|", *rows])


def _rows(path: str, schema: Mapping) -> Iterator[tuple[str, ...]]:
    for key, option in schema["properties"].items():
        name = f"{path}{key}"
        if option.get("type") == "object" and "properties" in option:
            yield from _rows(f"{name}.", option)
        else:
            yield (
                f"`{name}`",
                f"`{_yaml(option['default'])}`",
                _allowed(option),
                option["description"].strip(),
            )


def _yaml(value: object) -> object:
    return json.dumps(value) if isinstance(value, bool | None) else value


def _allowed(option: Mapping) -> str:
    if "x-allowed" in option:
        return option["x-allowed"].strip()
    if "enum" in option:
        words = ("null" if value is None else value for value in option["enum"])
        return ", ".join(f"`{word}`" for word in words)
    if "exclusiveMinimum" in option:
        return f"more than {option['exclusiveMinimum']}, up to {option['maximum']}"
    if "minimum" in option:
        return f"{option['minimum']} to {option['maximum']}"
    return "`true`, `false`" if option["type"] == "boolean" else "text"
