"""Compare trainings by deep Q-learning: a table of medians, its bars, and learning curves.

By hand:

    python scripts/training_table.py runs.csv table.csv table.md bars.svg curves.svg SHA256SUMS
        --metrics results/train/baseline/1/metrics.json --spec '{"stage": "training_table",
        "config": {"dqn.variants": ["baseline", "fast"], "dqn.seeds": [1, 2]}}'
"""

from pathlib import Path

from goalreel import cli
from goalreel.provenance.arguments import spec_of, stage_parser


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = stage_parser(__doc__, "training_table")
    options.add_argument(
        "--metrics", type=Path, required=True, help="metrics.json of the first training"
    )
    options.add_argument("runs", type=Path, help="a row for each training to write, .csv")
    options.add_argument("rows", type=Path, help="a row for each variant to write, .csv")
    options.add_argument("table", type=Path, help="the same table as Markdown to write")
    options.add_argument("bars", type=Path, help="the plot of speeds to write, .svg")
    options.add_argument("curves", type=Path, help="the learning curves to write, .svg")
    options.add_argument("sums", type=Path, help="the checksums of the five to write")
    arguments = options.parse_args(argv)

    from goalreel.files.atomic import write_text
    from goalreel.provenance.checksums import write_sums
    from goalreel.provenance.input_checks import check_inputs
    from goalreel.training.dqn.comparison import as_csv, as_markdown, rows_of, runs_as_csv
    from goalreel.training.dqn.metrics import read_metrics
    from goalreel.training.dqn.plots import plot_bars, plot_curves

    spec = spec_of(arguments)
    folder, name = arguments.metrics.parents[2], arguments.metrics.name
    paths = {
        f"dqn {variant} {seed}": folder / variant / str(seed) / name
        for variant in spec.config["dqn.variants"]
        for seed in spec.config["dqn.seeds"]
    }
    check_inputs(spec, **paths)
    trainings = [read_metrics(path) for path in paths.values()]
    rows = rows_of(trainings)
    write_text(arguments.runs, runs_as_csv(trainings))
    write_text(arguments.rows, as_csv(rows))
    write_text(arguments.table, as_markdown(rows))
    plot_bars(arguments.bars, rows, spec.text)
    plot_curves(arguments.curves, trainings, spec.text)
    files = [arguments.runs, arguments.rows, arguments.table, arguments.bars, arguments.curves]
    write_sums(arguments.sums, files)
    cli.say(f"{len(rows)} variants in {len(trainings)} trainings")


if __name__ == "__main__":
    cli.run(main)
