"""Write a run as a LeRobot data set: videos of many episodes, and their steps in Parquet.

By hand, for a run of two shards:

    python scripts/lerobot.py lerobot --frames results/frames/00000.npz
        --trajectories results/trajectories/00000.npz --spec '{"stage": "lerobot", "config": {
        "env": "CartPole-v1", "film.fps": 50, "unit": "episode",
        "view_encoder": {"encoder": "x264", "preset": "veryfast", "qp": 23}},
        "shard": {"shards": 2}}'
"""

from pathlib import Path

from goalreel import cli
from goalreel.provenance.arguments import spec_of, stage_parser


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = stage_parser(__doc__, "lerobot")
    options.add_argument("--frames", type=Path, required=True, help="the frame cache of shard 0")
    options.add_argument("--trajectories", type=Path, required=True, help="the file of shard 0")
    options.add_argument("--threads", type=int, default=1, help="videos encoded at the same time")
    options.add_argument("output", type=Path, help="the folder to write")
    arguments = options.parse_args(argv)

    from goalreel.errors import counted
    from goalreel.files.atomic import replacing_folder
    from goalreel.provenance.checksums import write_folder_sums
    from goalreel.report.lerobot import write_dataset
    from goalreel.views.filmed_episodes import read_filmed
    from goalreel.views.run_shards import shard_files

    spec = spec_of(arguments)
    trajectories, frames = shard_files(spec, arguments.trajectories, arguments.frames)
    filmed = read_filmed(trajectories, frames, spec.config["env"], spec.config["unit"])
    with replacing_folder(arguments.output) as folder:
        written = write_dataset(folder, filmed, trajectories, spec, arguments.threads)
        write_folder_sums(folder)
    cli.say(f"{counted(written, 'frame')} of {counted(len(filmed.places), 'episode')}")


if __name__ == "__main__":
    cli.run(main)
