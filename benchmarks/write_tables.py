"""Write what the benchmarks measured into README.md and the pages of docs/: tables and figures.

    python -m benchmarks.write_tables            writes what has changed
    python -m benchmarks.write_tables --check    ends with status 1 where something has changed

A page holds markers, and what stands between them is replaced:

    <!-- table: peers -->...<!-- end -->                     results/peers.md
    <!-- table: speed -->...<!-- end -->                     the README's table, below
    <!-- value: peers | ROW | ratio -->...<!-- end -->       a cell of results/peers.csv

Within a table of the page a value's bars have a backslash before them.
"""

import argparse
import csv
import re
import sys
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_MARKER = re.compile(r"(<!-- (table|value): (.+?) -->).*?(<!-- end -->)", re.S)
# The README's table: what is done, and the rows of the strongest peer and of goalreel; or one row
# for both, with a column for each.
_FILM, _PIXELS = "1,000 episodes of Mountain Car as a film, ", "an action each frame"
_PEER = "film: moviepy"
SPEED = (
    (f"{_FILM}first run", "peers", _PEER, "film: goalreel, cold", "frames/s"),
    (f"{_FILM}pictures cached", "peers", _PEER, "film: goalreel, warm", "frames/s"),
    (
        f"{_FILM}by x264 at the peer's preset",
        *("peers", _PEER, "film: goalreel, warm, x264 preset medium", "frames/s"),
    ),
    (
        "Mountain Car simulated on one core",
        *("peers", "simulation: EnvPool", "simulation: goalreel", "steps/s"),
    ),
    (
        "Stacked 84x84 pictures of Mountain Car, 16 lanes",
        *("pixels", f"{_PIXELS}: Gymnasium", f"{_PIXELS}: goalreel's atlas, 16", "frames/s"),
    ),
    (
        "CartPole, RecordVideo replaced in a script",
        *("record_video", "CartPole-v1: gymnasium", "CartPole-v1: goalreel", "frames/s"),
    ),
    *(
        (
            f"{episodes} episodes of {name} as a film, on two cores",
            "environments",
            f"{env} | RecordVideo, frames/s",
            f"{env} | goalreel, 2 cores, frames/s",
            "frames/s",
        )
        for episodes, name, env in (
            ("100", "CartPole", "CartPole-v1"),
            ("300", "LunarLander", "LunarLander-v3"),
            ("300", "Atari Breakout", "ALE/Breakout-v5"),
            ("1,000", "MiniGrid", "MiniGrid-DoorKey-8x8-v0"),
        )
    ),
)


def main(argv: list[str] | None = None) -> None:
    """Write all pages, or check them."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--check", action="store_true", help="write nothing")
    check = options.parse_args(argv).check
    changed = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if (new := filled(text)) != text:
            changed.append(str(page.relative_to(ROOT)))
            if not check:
                page.write_text(new, encoding="utf-8")
    print("\n".join(changed))
    sys.exit(bool(check and changed))


def filled(text: str) -> str:
    """Return a page with all that its markers name."""

    def replaced(match: re.Match) -> str:
        opening, kind, name, end = match[1], match[2], match[3], match[4]
        if kind == "value":
            parts = name.replace("\\|", "|").split("|")
            return f"{opening}{value(*map(str.strip, parts))}{end}"
        path = RESULTS / f"{name}.md"
        table = speed() if name == "speed" else path.read_text(encoding="utf-8").strip()
        return f"{opening}\n{table}\n{end}"

    return _MARKER.sub(replaced, text)


def value(name: str, row: str, column: str) -> str:
    """Return a cell, thousands with commas; the row is the first whose cells begin with `row`.

    Cells of text are joined by a comma and a space.
    """
    cell = _row(name, row)[column].replace(",", "")
    number = float(cell.rstrip("%"))
    percent = "%" if cell.endswith("%") else ""
    return f"{number:,.0f}{percent}" if abs(number) >= 100 else f"{cell}"


def speed() -> str:
    """Return the README's table."""
    lines = [
        "| | Peer | goalreel | Ratio | EnvPool into x264 `ultrafast`, one core |",
        "|---|---:|---:|---:|---:|",
    ]
    for what, name, peer, ours, unit in SPEED:
        (program, theirs), (_, own) = (_speed(name, place) for place in (peer, ours))
        ratio = own / theirs
        shown = f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}"
        cells = what, f"{program}: {theirs:,.0f} {unit}", f"{own:,.0f} {unit}", shown
        best = _envpool(peer.split(" | ")[0]) if name == "environments" else ""
        lines.append(f"| {' | '.join((*cells, best))} |")
    return "\n".join(lines)


def _envpool(env: str) -> str:
    """Return how fast EnvPool's own pictures of an environment are filmed, and how many differ."""
    row = _row("environments", env)
    differ = row["EnvPool, pixels that differ"]
    told = f"{differ} of pixels differ" if differ else "pixels not compared"
    return f"{float(row['EnvPool, frames/s']):,.0f} frames/s, {told}"


def _speed(name: str, place: str) -> tuple[str, float]:
    """Return who is in a row, or in the column of a row, and how fast it is."""
    beginning, _, column = place.partition(" | ")
    row = _row(name, beginning)
    program = column.split(",")[0] or row["step"].split(": ")[1]
    program = re.sub(r" \(.*| of the shown.*|'s render.*", "", program)
    return program.removeprefix("gymnasium.wrappers."), float(row[column or "FPS"].replace(",", ""))


def _row(name: str, beginning: str) -> dict[str, str]:
    with (RESULTS / f"{name}.csv").open(encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows):
            if ", ".join(row.values()).startswith(beginning):
                return row
    raise SystemExit(f"benchmarks/results/{name}.csv has no row that begins with {beginning!r}")


if __name__ == "__main__":
    main()
