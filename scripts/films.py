"""Write films.csv, the index of a film in parts: each file, its reaches, frames, seconds and bytes.

By hand, for two parts:

    python scripts/films.py films.csv --parts results/films/00000.mp4 --spec '{
        "stage": "films", "config": {"film.fps": 30, "unit": "reach"},
        "shard": {"parts": 2, "reaches": 2000}}'
"""

from pathlib import Path

from goalreel import cli
from goalreel.provenance.arguments import spec_of, stage_parser


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = stage_parser(__doc__, "films")
    options.add_argument("--parts", type=Path, required=True, help="the first part, .mp4")
    options.add_argument("output", type=Path, help="the table to write, .csv")
    arguments = options.parse_args(argv)

    from goalreel.films.parts_index import write_index
    from goalreel.films.shards import shard_paths

    spec = spec_of(arguments)
    parts = shard_paths(arguments.parts, spec.shard["parts"])
    fps, unit = spec.config["film.fps"], spec.config["unit"]
    frames = write_index(parts, arguments.output, fps, spec.shard["reaches"], unit)
    cli.say(f"{frames} frames in {len(parts)} films")


if __name__ == "__main__":
    cli.run(main)
