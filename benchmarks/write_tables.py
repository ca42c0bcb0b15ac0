"""Write the tables and figures of the benchmarks into README.md and the pages of docs/.

    python -m benchmarks.write_tables

A page holds markers. This program replaces the text between them:

    <!-- table: peers -->...<!-- end -->                     results/peers.md
    <!-- value: peers | ROW | ratio -->...<!-- end -->       a cell of results/peers.csv

In a table of the page, write a backslash before the bars of a value.
"""

import csv
import re
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_MARKER = re.compile(r"(<!-- (table|value): (.+?) -->).*?(<!-- end -->)", re.S)


def main() -> None:
    """Write all pages, and print the changed ones."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if (new := filled(text)) != text:
            page.write_text(new, encoding="utf-8")
            print(page.relative_to(ROOT))


def filled(text: str) -> str:
    """Return a page with the contents of its markers."""

    def replaced(match: re.Match) -> str:
        opening, kind, name, end = match[1], match[2], match[3], match[4]
        if kind == "value":
            parts = name.replace("\\|", "|").split("|")
            return f"{opening}{value(*map(str.strip, parts))}{end}"
        table = (RESULTS / f"{name}.md").read_text(encoding="utf-8").strip()
        return f"{opening}\n{table}\n{end}"

    return _MARKER.sub(replaced, text)


def value(name: str, row: str, column: str) -> str:
    """Return a cell, with commas for thousands, of the first row that begins with `row`.

    A comma and a space join the cells of a row.
    """
    cell = _row(name, row)[column].replace(",", "")
    if cell == "-":
        return cell
    number = float(cell.rstrip("%"))
    percent = "%" if cell.endswith("%") else ""
    return f"{number:,.0f}{percent}" if abs(number) >= 100 else f"{cell}"


def _row(name: str, beginning: str) -> dict[str, str]:
    with (RESULTS / f"{name}.csv").open(encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows):
            if ", ".join(row.values()).startswith(beginning):
                return row
    raise SystemExit(f"benchmarks/results/{name}.csv has no row that begins with {beginning!r}")


if __name__ == "__main__":
    main()
