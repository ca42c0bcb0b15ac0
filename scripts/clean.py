"""Remove what goalreel made in a folder of results, and nothing else; no run may be under way.

Files that it does not know stay, and are named. By hand:

    python scripts/clean.py results
"""

from pathlib import Path

from goalreel import program


def main(argv: list[str] | None = None) -> None:
    """Run the program with the arguments of a command line."""
    options = program.parser(__doc__)
    options.add_argument("results", type=Path, help="the folder of results")
    arguments = options.parse_args(argv)

    from goalreel.cleaning import clean

    program.say(clean(arguments.results))


if __name__ == "__main__":
    program.run(main)
