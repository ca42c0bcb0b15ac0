"""Film the phase plane: position against velocity, all trajectories of the run as they grow.

By hand, for two shards:

    python scripts/phase.py phase.mp4 --spec '{
        "stage": "phase",
        "config": {"env": "MountainCar-v0", "film.fps": 30,
        "view_encoder": {"encoder": "x264", "preset": "veryfast", "qp": 23}},
        "shard": {"shards": 2}}' --trajectories results/trajectories/00000.npz
"""

from pathlib import Path

from goalreel import cli
from goalreel.provenance.arguments import spec_of, stage_parser


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = stage_parser(__doc__, "phase")
    options.add_argument("--trajectories", type=Path, required=True, help="the file of shard 0")
    options.add_argument("output", type=Path, help="the video to write, .mp4")
    arguments = options.parse_args(argv)

    from goalreel.views.phase import portraits, read_trails
    from goalreel.views.run_shards import shard_files, write_video

    spec = spec_of(arguments)
    trajectories, _ = shard_files(spec, arguments.trajectories)
    trails = read_trails(trajectories, spec.config["env"])
    frames = write_video(arguments.output, portraits(trails), spec)
    cli.say(f"{frames} frames of {len(trails.steps)} of {trails.total} trajectories")


if __name__ == "__main__":
    cli.run(main)
