"""The options page of the documentation, generated from config.schema.yaml."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from goalreel.workflow.config import read_schema
from goalreel.workflow.config_errors import allowed

_HEAD = "| Option | Default | Allowed | Meaning |\n|---|---|---|---|"


def options_page(schema_path: Path) -> str:
    """Return the Markdown of all options: a heading and a table for each section."""
    options = read_schema(schema_path)["properties"]
    top = {key: option for key, option in options.items() if "properties" not in option}
    page = f"## General\n\n{_HEAD}\n" + "".join(_rows("", top))
    for section, option in options.items():
        if section not in top:
            rows = "".join(_rows(f"{section}.", option["properties"]))
            page += f"\n## {section}\n\n{option['description'].strip()}\n\n{_HEAD}\n{rows}"
    return page


def _rows(prefix: str, options: Mapping[str, Mapping]) -> Iterator[str]:
    for key, option in options.items():
        default, meaning = option["default"], option["description"].strip()
        if not isinstance(default, str):
            default = json.dumps(default)
        yield f"| `{prefix}{key}` | `{default}` | {allowed(option)} | {meaning} |\n"


def options_table(schema_path: Path) -> str:
    """Return the Markdown table of all options: key, default, allowed values, meaning."""
    rows = []
    for key, option in read_schema(schema_path)["properties"].items():
        inner = option.get("properties")
        rows += _rows(f"{key}.", inner) if inner else _rows("", {key: option})
    return "\n".join([_HEAD, *(row.rstrip("\n") for row in rows)])


def replace_table(text: str, table: str) -> str:
    """Return a document with its table of options replaced by `table`."""
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("| Option |"))
    last = next((i for i in range(first, len(lines)) if not lines[i].startswith("|")), len(lines))
    return "\n".join([*lines[:first], table, *lines[last:]]) + "\n"
