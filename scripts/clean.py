"""Remove what goalreel made in a folder of results, and nothing else; no run may be under way.

Files that it does not know stay, and are named. By hand:

    python scripts/clean.py results
"""

from pathlib import Path

from goalreel import cli


def main(argv: list[str] | None = None) -> None:
    """Run the program with the arguments of a command line."""
    options = cli.parser(__doc__)
    options.add_argument("results", type=Path, help="the folder of results")
    arguments = options.parse_args(argv)

    from goalreel.verification.cleaning import clean

    cli.say(clean(arguments.results))


if __name__ == "__main__":
    cli.run(main)
