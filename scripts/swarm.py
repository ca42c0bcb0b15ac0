"""Film the swarm: all reaches of the run on one track at the same time, each a translucent car.

By hand, for two shards:

    python scripts/swarm.py swarm.mp4 --atlas results/atlas.npz --spec '{
        "stage": "swarm",
        "config": {"env": "MountainCar-v0", "render": {"style": "gymnasium"}, "film.fps": 30,
        "view_encoder": {"encoder": "x264", "preset": "veryfast", "qp": 23}},
        "shard": {"shards": 2}}' --trajectories results/trajectories/00000.npz
"""

from pathlib import Path

from goalreel import cli
from goalreel.provenance.arguments import spec_of, stage_parser


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = stage_parser(__doc__, "swarm")
    options.add_argument("--atlas", type=Path, required=True)
    options.add_argument("--trajectories", type=Path, required=True, help="the file of shard 0")
    options.add_argument("output", type=Path, help="the video to write, .mp4")
    arguments = options.parse_args(argv)

    from goalreel.pictures.atlas import read_atlas
    from goalreel.pictures.styles import make_style
    from goalreel.provenance.input_checks import check_inputs
    from goalreel.views.run_shards import read_shards, shard_files, write_video
    from goalreel.views.swarm import count_cars

    spec = spec_of(arguments)
    style = make_style(spec.config["env"], spec.config["render"])
    trajectories, _ = shard_files(spec, arguments.trajectories)
    check_inputs(spec, atlas=arguments.atlas)
    swarm = count_cars(read_shards(trajectories), read_atlas(arguments.atlas), style)
    frames = write_video(arguments.output, swarm.frames(), spec)
    cli.say(f"{frames} frames of {swarm.cars} cars in {len(swarm.shapes)} distinct pictures")


if __name__ == "__main__":
    cli.run(main)
