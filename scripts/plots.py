"""Draw the plots: steps to the goal, steps by initial position, phase portrait, reach rate.

By hand, for two shards:

    python scripts/plots.py steps.svg initial_position.svg phase.svg reach_rate.svg
        SHA256SUMS --spec '{"stage": "plots",
        "config": {"env": "MountainCar-v0", "policy": {"name": "pump", "epsilon": 0}},
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
    options.add_argument("--attempts", type=Path, nargs="?", help="table of all attempts")
    options.add_argument("--trajectories", type=Path, required=True, help="the file of shard 0")
    options.add_argument("steps", type=Path, help="the histogram to write, .svg")
    options.add_argument("initial_position", type=Path, help="steps by initial position to write")
    options.add_argument("phase", type=Path, help="the phase portrait to write, .svg")
    options.add_argument("reach_rate", type=Path, help="the reach rate to write, .svg")
    options.add_argument("sums", type=Path, help="the checksums of the plots to write")
    arguments = options.parse_args(argv)

    from goalreel.film.shards import shard_paths
    from goalreel.provenance.checksums import write_sums
    from goalreel.provenance.input_checks import check_inputs
    from goalreel.report import plots
    from goalreel.report.plot_data import read_portrait, read_steps
    from goalreel.report.reach_rate import reach_rate

    spec = spec_of(arguments)
    check_inputs(spec, simulate=shard_paths(arguments.trajectories, spec.shard["shards"]))
    steps = read_steps(arguments.episodes)
    rate = reach_rate(arguments.attempts, spec.config["policy"])
    portrait = read_portrait(arguments.trajectories, spec.shard["shards"], spec.config["env"])
    plots.plot_steps(arguments.steps, steps, spec.text)
    plots.plot_initial_position(arguments.initial_position, steps, spec.text)
    plots.plot_phase(arguments.phase, portrait, spec.text)
    plots.plot_reach_rate(arguments.reach_rate, [rate], spec.text)
    made = [arguments.steps, arguments.initial_position, arguments.phase, arguments.reach_rate]
    write_sums(arguments.sums, made)
    cli.say(f"4 plots of {steps.reaches} reaches in {rate.attempts} attempts")


if __name__ == "__main__":
    cli.run(main)
