"""Write config/config.schema.yaml and the tables of docs/reference/options.md.

PYTHONPATH=scripts python -m docs.options
"""

import copy
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from goalreel.configuration.schema import allowed, schema

_TOP = """\
# Generated from scripts/goalreel/configuration/options.py, which defines the options, by
# PYTHONPATH=scripts python -m docs.options
# A `title` says in words which values are allowed, where type and range do not.
"""
_SCHEMA = Path(__file__).parents[1] / "config/config.schema.yaml"
_HEAD = "| Option | Default | Allowed | Meaning |\n|---|---|---|---|"


def described() -> dict:
    """Return the JSON schema of all options, with the descriptions that config.schema.yaml has."""
    made = copy.deepcopy(schema())
    _describe(made, yaml.safe_load(_SCHEMA.read_text(encoding="utf-8")), "")
    return made


def _describe(model: dict, known: Mapping, prefix: str) -> None:
    for key, option in model["properties"].items():
        found = known["properties"].get(key, {})
        if "properties" in option:  # its description is the docstring of its model
            _describe(option, {"properties": {}} | found, f"{key}.")
        elif "description" in found:
            option["description"] = " ".join(found["description"].split())
        else:
            raise SystemExit(
                f"{_SCHEMA}: Has no description of {prefix}{key}. Add one, such as "
                "NAME: {description: ...} in the properties of its section."
            )


def schema_file() -> str:
    """Return the text of config.schema.yaml."""
    return _TOP + yaml.safe_dump(described(), sort_keys=False, allow_unicode=True, width=100)


def options_page() -> str:
    """Return the Markdown of all options: a heading and a table for each section."""
    properties = described()["properties"]
    top = {key: option for key, option in properties.items() if "properties" not in option}
    page = f"## General\n\n{_HEAD}\n" + "".join(_rows("", top))
    for section, option in properties.items():
        if section not in top:
            rows = "".join(_rows(f"{section}.", option["properties"]))
            page += f"\n## {section}\n\n{option['description']}\n\n{_HEAD}\n{rows}"
    return page


def _rows(prefix: str, properties: Mapping[str, Mapping]) -> Iterator[str]:
    for key, option in properties.items():
        default = option["default"]
        if not isinstance(default, str):
            default = json.dumps(default)
        cells = f"`{prefix}{key}`", f"`{default}`", allowed(option), option["description"]
        yield f"| {' | '.join(cells)} |\n"


def filled_page(text: str) -> str:
    """Return the page docs/reference/options.md with the tables of today between its markers."""
    tables = f"<!-- options -->\n{options_page()}<!-- end -->"
    return re.sub("<!-- options -->.*<!-- end -->", lambda _: tables, text, flags=re.S)


if __name__ == "__main__":
    Path("config/config.schema.yaml").write_text(schema_file(), encoding="utf-8")
    page = Path("docs/reference/options.md")
    page.write_text(filled_page(page.read_text(encoding="utf-8")), encoding="utf-8")
