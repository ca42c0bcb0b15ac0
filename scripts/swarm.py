"""Film the swarm: all reaches of the run on one track at the same time, each a translucent car.

By hand, for two shards:

    python scripts/swarm.py swarm.mp4 --atlas results/atlas.npz --spec '{
        "stage": "swarm",
        "config": {"env": "MountainCar-v0", "render": {"style": "gymnasium"}, "film.fps": 30,
        "encode": {"encoder": "x264", "preset": "veryfast", "qp": 23}},
        "shard": {"shards": 2}}' --trajectories results/trajectories/00000.npz
"""

from pathlib import Path

from goalreel import program


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = program.stage_parser(__doc__, "swarm")
    options.add_argument("--atlas", type=Path, required=True)
    options.add_argument("--trajectories", type=Path, required=True, help="those of shard 0")
    options.add_argument("output", type=Path, help="the video to write, .mp4")
    arguments = options.parse_args(argv)

    from goalreel import ffmpeg
    from goalreel.atlas import read_atlas
    from goalreel.made_of import check_inputs
    from goalreel.shards import shard_paths
    from goalreel.styles import make_style
    from goalreel.swarm import count_cars
    from goalreel.views import goal_position, run_shards, write_view

    spec = program.spec_of(arguments)
    spec.check_tool("ffmpeg", ffmpeg.version())
    env = spec.config["env"]
    goal_position(env)  # says that the view needs Mountain Car
    trajectories = shard_paths(arguments.trajectories, spec.shard["shards"])
    check_inputs(spec, simulate=trajectories, atlas=arguments.atlas)
    shards = run_shards(trajectories, env)
    swarm = count_cars(shards, read_atlas(arguments.atlas), make_style(env, spec.config["render"]))
    height, width = swarm.background.shape[:2]
    frames = write_view(
        arguments.output,
        swarm.frames(),
        (width, height),
        spec.config["film.fps"],
        spec.config["encode"],
        spec.text,
    )
    program.say(f"{frames} frames of {swarm.cars} cars in {len(swarm.shapes)} distinct pictures")


if __name__ == "__main__":
    program.run(main)
