"""Join the segments of all shards, or of a part, into a film with a chapter for each episode.

Segments with smaller pictures than others are padded first. By hand, for two shards:

    python scripts/concat.py film.mp4 --segments results/segments/00000.mp4 --spec '{
        "stage": "concat",
        "config": {"env": "MountainCar-v0", "film.fps": 30, "card_frames": 15, "unit": "reach"},
        "shard": {"shards": 2, "reaches": 250}}' --trajectories results/trajectories/00000.npz
"""

from pathlib import Path

from goalreel import cli
from goalreel.provenance.arguments import spec_of, stage_parser


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = stage_parser(__doc__, "concat")
    options.add_argument("--segments", type=Path, required=True, help="the segment of shard 0")
    options.add_argument("--trajectories", type=Path, required=True, help="the file of shard 0")
    options.add_argument("output", type=Path, help="the film to write, .mp4")
    arguments = options.parse_args(argv)

    from goalreel.errors import counted
    from goalreel.films.concatenate import concatenate
    from goalreel.films.padding import padded
    from goalreel.films.shards import shard_paths
    from goalreel.provenance.input_checks import check_inputs

    spec = spec_of(arguments)
    shards, fps = spec.shard["shards"], spec.config["film.fps"]
    segments = shard_paths(arguments.segments, shards)
    trajectories = shard_paths(arguments.trajectories, shards)
    check_inputs(spec, simulate=trajectories, encode=segments)
    first, end = spec.shard.get("first"), spec.shard["reaches"]
    unit = spec.config["unit"]
    what = "goal reach" if unit == "reach" else unit
    told = counted(end, what) if first is None else f"{what} {first:,} to {end - 1:,}"
    told += "" if spec.reproducible else ", not reproducible"
    with padded(segments, trajectories, arguments.output.parent) as (whole, sizes):
        frames = concatenate(
            whole,
            trajectories,
            arguments.output,
            spec.config["env"],
            fps,
            spec.config["card_frames"],
            unit,
            f"{spec.config['env']}: {told}",
            (spec.extended(sizes=sizes) if sizes else spec).text,
        )
    cli.say(f"{frames} frames from {shards} segments")


if __name__ == "__main__":
    cli.run(main)
