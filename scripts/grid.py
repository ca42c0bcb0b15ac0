"""Film all episodes side by side: pages of rows and columns, one after another, as one video.

By hand, for a run of two shards:

    python scripts/grid.py grid.mp4 --frames results/frames/00000.npz --spec '{
        "stage": "grid",
        "config": {"env": "MountainCar-v0", "film.fps": 30,
            "view_encoder": {"encoder": "x264", "preset": "veryfast", "qp": 23},
            "grid": {"rows": 3, "columns": 4, "caption": "Reach {reach} · {steps} steps"}},
        "shard": {"shards": 2}}' --trajectories results/trajectories/00000.npz
"""

from pathlib import Path

from goalreel import cli
from goalreel.provenance.arguments import spec_of, stage_parser


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = stage_parser(__doc__, "grid")
    options.add_argument("--frames", type=Path, required=True, help="the frame cache of shard 0")
    options.add_argument(
        "--trajectories", type=Path, required=True, help="trajectory file of shard 0"
    )
    options.add_argument("output", type=Path, help="the video to write, .mp4")
    arguments = options.parse_args(argv)

    from goalreel.encoding import ffmpeg
    from goalreel.film.shards import shard_paths
    from goalreel.provenance.input_checks import check_inputs
    from goalreel.views.filmed_episodes import read_filmed
    from goalreel.views.grid import film_grid

    spec = spec_of(arguments)
    spec.check_tool("ffmpeg", ffmpeg.version())
    frames = shard_paths(arguments.frames, spec.shard["shards"])
    trajectories = shard_paths(arguments.trajectories, spec.shard["shards"])
    check_inputs(spec, simulate=trajectories, render=frames)
    filmed = read_filmed(frames, trajectories, spec.config["env"])
    shown, pages = film_grid(
        filmed,
        arguments.output,
        spec.config["grid"],
        spec.config["film.fps"],
        spec.config["view_encoder"],
        spec.text,
    )
    cli.say(f"{shown} frames on {pages} pages")


if __name__ == "__main__":
    cli.run(main)
