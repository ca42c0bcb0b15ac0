"""Remove the frame caches from a folder of results; no run may be under way.

Nothing is made again for it: a view that needs a cache renders it then. By hand:

    python scripts/free_frames.py results
"""

from pathlib import Path

from goalreel import program


def main(argv: list[str] | None = None) -> None:
    """Run the program with the arguments of a command line."""
    options = program.parser(__doc__)
    options.add_argument("results", type=Path, help="the folder of results")
    arguments = options.parse_args(argv)

    from goalreel.cleaning import free_frames

    program.say(free_frames(arguments.results))


if __name__ == "__main__":
    program.run(main)
