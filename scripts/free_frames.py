"""Remove the frame caches from a folder of results; no run may be under way.

Nothing is made again for it: a view that needs a cache renders it then. By hand:

    python scripts/free_frames.py results
"""

from pathlib import Path

from goalreel import cli


def main(argv: list[str] | None = None) -> None:
    """Run the program with the arguments of a command line."""
    options = cli.parser(__doc__)
    options.add_argument("results", type=Path, help="the folder of results")
    arguments = options.parse_args(argv)

    from goalreel.verification.cleaning import free_frames

    cli.say(free_frames(arguments.results))


if __name__ == "__main__":
    cli.run(main)
