"""Train a policy from pixels: collectors play beside a learner, without locks.

By hand, where PyTorch is installed (requirements-train.in):

    python scripts/pixels.py policy.npz monitor.csv metrics.json training.svg --saved saved.pt
        --spec '{"stage": "pixels", "config": {"pixels": {"game": "MountainCar-v0", ...}}}'

with all options of config.yaml's section. Ctrl-C or SIGTERM stops it and saves its state, from
which the same command resumes.
"""

from pathlib import Path

from goalreel import cli
from goalreel.provenance.arguments import spec_of, stage_parser


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = stage_parser(__doc__, "pixels")
    options.add_argument("policy", type=Path, help="the weights to write, .npz")
    options.add_argument("table", type=Path, help="the monitor's table to write, .csv")
    options.add_argument("metrics", type=Path, help="the metrics to write, .json")
    options.add_argument("plot", type=Path, help="the monitor's curves to write, .svg")
    options.add_argument(
        "--saved",
        type=Path,
        required=True,
        metavar="FILE",
        help="checkpoint of a stopped training, from which the next run resumes, .pt; the "
        "monitor's table so far is saved beside it, .csv",
    )
    arguments = options.parse_args(argv)

    from goalreel.policies.pytorch import import_torch
    from goalreel.training.pixels.monitor import plot_training
    from goalreel.training.pixels.settings import PipelineSettings

    spec = spec_of(arguments)
    settings = PipelineSettings(**spec.config["pixels"])
    torch = import_torch("to train")
    # Of the job's cores, as Snakemake tells them by OMP_NUM_THREADS, each collector has one.
    torch.set_num_threads(max(1, torch.get_num_threads() - settings.collectors))
    from goalreel.training.pixels.training import table_of, train, write_results

    trained = train(settings, arguments.saved, spec.code)
    files = (arguments.policy, arguments.table, arguments.metrics)
    summary = write_results(*files, trained, spec)
    plot_training(arguments.plot, trained.rows, settings.game, spec.text)
    for path in (arguments.saved, table_of(arguments.saved)):
        path.unlink(missing_ok=True)
    cli.say(summary)


if __name__ == "__main__":
    cli.run(main)
