"""Write the tables: episodes.csv, a row per filmed episode; of reaches also attempts.csv.

By hand, for two shards:

    python scripts/episodes.py episodes.csv tables.json --attempts attempts.csv --spec '{
        "stage": "episodes",
        "config": {"env": "MountainCar-v0", "film.fps": 30, "card_frames": 15},
        "shard": {"shards": 2}}' --trajectories results/trajectories/00000.npz
"""

from pathlib import Path

from goalreel import cli
from goalreel.provenance.arguments import spec_of, stage_parser


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = stage_parser(__doc__, "episodes")
    options.add_argument("--trajectories", type=Path, required=True, help="the file of shard 0")
    options.add_argument(
        "--attempts", type=Path, nargs="?", help="the table of all attempts to write, of reaches"
    )
    options.add_argument("episodes", type=Path, help="the table of filmed episodes to write")
    options.add_argument("made", type=Path, help="their spec and sha256 to write, .json")
    arguments = options.parse_args(argv)

    from goalreel.files.atomic import replacing
    from goalreel.films.shards import shard_paths
    from goalreel.films.tables import write_tables
    from goalreel.provenance.checksums import with_digests
    from goalreel.provenance.input_checks import check_inputs

    spec = spec_of(arguments)
    fps = spec.config["film.fps"]
    trajectories = shard_paths(arguments.trajectories, spec.shard["shards"])
    check_inputs(spec, simulate=trajectories)
    rows = write_tables(
        trajectories,
        arguments.episodes,
        arguments.attempts,
        spec.config["env"],
        fps,
        spec.config["card_frames"],
    )
    tables = filter(None, [arguments.episodes, arguments.attempts])
    told = with_digests(spec, list(tables))
    with replacing(arguments.made) as temporary:
        temporary.write_text(told, encoding="ascii")
    cli.say(f"{rows} filmed episodes")


if __name__ == "__main__":
    cli.run(main)
