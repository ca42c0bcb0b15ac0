"""Film all episodes side by side: pages of rows and columns, one after another, as one video.

By hand, for a run of two shards:

    python scripts/grid.py grid.mp4 --frames results/frames/00000.npz --spec '{
        "stage": "grid",
        "config": {"env": "MountainCar-v0", "film.fps": 30, "unit": "reach",
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
    options.add_argument("--trajectories", type=Path, required=True, help="the file of shard 0")
    options.add_argument("output", type=Path, help="the video to write, .mp4")
    arguments = options.parse_args(argv)

    from goalreel.views.filmed_episodes import read_filmed
    from goalreel.views.grid import film_grid
    from goalreel.views.run_shards import shard_files

    spec = spec_of(arguments)
    files = shard_files(spec, arguments.trajectories, arguments.frames)
    filmed = read_filmed(*files, spec.config["env"], spec.config["unit"])
    frames, pages = film_grid(filmed, arguments.output, spec)
    cli.say(f"{frames} frames on {pages} pages")


if __name__ == "__main__":
    cli.run(main)
