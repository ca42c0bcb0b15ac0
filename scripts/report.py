"""Write the report: a page that plays the film, finds each reach and shows the plots.

By hand, for two shards (open report/index.html afterwards):

    python scripts/report.py report --spec '{
        "stage": "report",
        "config": {"env": "MountainCar-v0", "unit": "reach", "film.fps": 30,
            "policy": {"name": "pump"}},
        "shard": {"shards": 2, "reaches": 250}}' --film results/film.mp4
        --episodes results/episodes.csv --attempts results/attempts.csv
        --tables results/tables.json --plots results/plots
        --trajectories results/trajectories/00000.npz --frames results/frames/00000.npz
        --segments results/segments/00000.mp4 --atlas results/atlas.npz
"""

from pathlib import Path

from goalreel import cli
from goalreel.provenance.arguments import spec_of, stage_parser


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = stage_parser(__doc__, "report")
    needed = {"type": Path, "required": True}
    options.add_argument("--film", help="the film, .mp4", **needed)
    options.add_argument("--episodes", help="the table of filmed episodes, .csv", **needed)
    # Where episodes are filmed as they come, there is none: a bare --attempts then.
    options.add_argument("--attempts", type=Path, nargs="?", help="table of all attempts, .csv")
    options.add_argument("--tables", help="the spec of both tables, .json", **needed)
    options.add_argument("--plots", help="the folder of plots", **needed)
    # Other environments than Mountain Car have neither: a bare --swarm then.
    options.add_argument("--swarm", type=Path, nargs="?", help="the swarm view, .mp4")
    options.add_argument("--grid", type=Path, help="the grid view, .mp4")
    # Only policies that are trained here have one: a bare --learning otherwise.
    options.add_argument("--learning", type=Path, nargs="?", help="the learning film, .mp4")
    options.add_argument("--trajectories", help="trajectory file of shard 0, .npz", **needed)
    options.add_argument("--frames", help="the frame cache of shard 0, .npz", **needed)
    options.add_argument("--segments", help="the segment of shard 0, .mp4", **needed)
    options.add_argument("--atlas", type=Path, nargs="?", help="the atlas, .npz")
    options.add_argument(
        "--benchmarks", type=Path, help="folder of the benchmarks (default: beside the film)"
    )
    options.add_argument("output", type=Path, help="the folder to write")
    arguments = options.parse_args(argv)

    from goalreel.provenance.checksums import SUMS, read_sums
    from goalreel.provenance.input_checks import check_inputs
    from goalreel.report.page import Sources, write_report
    from goalreel.workflow.stages import FILM

    spec = spec_of(arguments)
    plots = list(read_sums(arguments.plots / SUMS))
    check_inputs(
        spec,
        simulate=arguments.trajectories,
        render=arguments.frames,
        encode=arguments.segments,
        atlas=arguments.atlas,
        concat=arguments.film,
        episodes=arguments.tables,
        plots=arguments.plots,
        grid=arguments.grid,
        swarm=arguments.swarm,
        learning=arguments.learning,
    )
    views = {"Swarm": arguments.swarm, "Grid": arguments.grid, "Learning": arguments.learning}
    views = {title: path for title, path in views.items() if path is not None}
    atlas = [arguments.atlas] if arguments.atlas else []
    stages = [arguments.trajectories, *atlas, arguments.frames, arguments.segments]
    rows = write_report(
        arguments.output,
        Sources(
            film=arguments.film,
            episodes=arguments.episodes,
            attempts=arguments.attempts,
            plots=plots,
            views=views,
            artefacts=[
                *[*stages, arguments.film, arguments.tables],
                *[*views.values(), plots[0]],
            ],
            benchmarks=arguments.benchmarks or arguments.film.parent / "benchmarks",
            stages=list(FILM),
        ),
        spec,
    )
    cli.say(f"{rows} episodes in {arguments.output / 'index.html'}")


if __name__ == "__main__":
    cli.run(main)
