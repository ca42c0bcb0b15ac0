"""Draw the plots that a run's episodes fill: returns, steps, states, actions, the reach rate.

By hand, for two shards:

    python scripts/plots.py results/plots --spec '{"stage": "plots",
        "config": {"env": "MountainCar-v0", "unit": "reach",
            "policy": {"name": "pump", "epsilon": 0}},
        "shard": {"shards": 2}}' --episodes results/episodes.csv
        --attempts results/attempts.csv --trajectories results/trajectories/00000.npz
"""

from pathlib import Path

from goalreel import cli
from goalreel.provenance.arguments import spec_of, stage_parser


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = stage_parser(__doc__, "plots")
    options.add_argument("--episodes", type=Path, required=True, help="table of filmed episodes")
    # Where episodes are filmed as they come, there is none: a bare --attempts then.
    options.add_argument("--attempts", type=Path, nargs="?", help="table of all attempts")
    options.add_argument("--trajectories", type=Path, required=True, help="the file of shard 0")
    options.add_argument("output", type=Path, help="the folder to write")
    arguments = options.parse_args(argv)

    from goalreel.environments.registry import describe
    from goalreel.files.atomic import replacing_folder
    from goalreel.films.shards import shard_paths
    from goalreel.provenance.checksums import SUMS, write_sums
    from goalreel.provenance.input_checks import check_inputs
    from goalreel.report.plot_data import read_returns, read_sample, read_steps
    from goalreel.report.plots import Run, draw_plots
    from goalreel.report.reach_rate import reach_rate

    spec = spec_of(arguments)
    shards, unit = spec.shard["shards"], spec.config["unit"]
    check_inputs(spec, simulate=shard_paths(arguments.trajectories, shards))
    rate = reach_rate(arguments.attempts, spec.config["policy"]) if arguments.attempts else None
    steps = read_steps(arguments.episodes, unit)
    run = Run(
        unit,
        steps,
        read_returns(arguments.episodes),
        read_sample(arguments.trajectories, shards, unit, steps.episodes),
        describe(spec.config["env"]).goal_position,
        rate,
    )
    with replacing_folder(arguments.output) as folder:
        made = draw_plots(folder, run, spec.text)
        write_sums(folder / SUMS, made)
    cli.say(f"{len(made)} plots of {run.returns.episodes} episodes")


if __name__ == "__main__":
    cli.run(main)
