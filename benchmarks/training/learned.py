"""Trainings from pixels: a table of their results, and the curves of their evaluations.

The trainings are the workflow's own, one after another, with all cores to themselves:

    for seed in 1 2 3; do
        snakemake -j 2 pixels --config results=pong-$seed "pixels={game: ALE/Pong-v5, seed: $seed}"
    done
    python -m benchmarks.training.learned pong pong-*/pixels/metrics.json

The table is learned_NAME.csv and learned_NAME.md. The plot is docs/images/learned_NAME.svg.
"""

import json
from pathlib import Path

from benchmarks.harness import ROOT, TRAINING_PACKAGES, parser, write_table
from goalreel.files.svg_plot import FILL, GRID, INK, MARK, Caption, plot_style, save

# Mean returns at which a game is learned.
LEVELS = {"ALE/Pong-v5": 18.0, "ALE/Breakout-v5": 10.0, "MountainCar-v0": -130.0}
HEADER = ("seed", "untrained", "best", "at decisions", "last", "decisions to {level}",
          "minutes to {level}", "minutes", "CPU minutes", "decisions/s")  # fmt: skip
_COLOURS, _DASHES = (FILL, MARK, INK), ("-", "--", "-.")


def main(argv: list[str] | None = None) -> None:
    """Read the metrics of trainings, and write the table and the curves."""
    add = (options := parser(__doc__)).add_argument
    add("name", help="name of the table and the plot")
    add("metrics", type=Path, nargs="+", help="metrics.json of each training")
    add("--images", type=Path, default=ROOT / "docs" / "images", help="folder for the plot")
    options = options.parse_args(argv)
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in options.metrics]
    game, level = game_of(runs), LEVELS.get(game_of(runs))
    rows = [row_of(run, level) for run in runs]
    header = [column.format(level=f"{level:g}" if level else "-") for column in HEADER]
    path = options.output / f"learned_{options.name}"
    write_table(path, header, rows, [note(runs)], 0, TRAINING_PACKAGES)
    plot(options.images / f"learned_{options.name}.svg", runs, game, level)


def game_of(runs: list[dict]) -> str:
    """Return the game of all trainings."""
    (game,) = {run["config"]["pixels"]["game"] for run in runs}
    return game


def mean(evaluation: dict) -> float:
    """Return the mean return of an evaluation's games."""
    return sum(evaluation["returns"]) / len(evaluation["returns"])


def row_of(run: dict, level: float | None) -> list[str]:
    """Return the cells of a training."""
    metrics = run["metrics"]
    evaluations = metrics["evaluations"]
    best = next(e for e in evaluations if e["checkpoint_step"] == metrics["best"])
    solved = [e for e in evaluations if level is not None and mean(e) >= level]
    reached = "", ""
    if solved:
        reached = f"{solved[0]['checkpoint_step']:,}", f"{solved[0]['seconds'] / 60:.1f}"
    return [
        str(run["config"]["pixels"]["seed"]),
        *(f"{mean(evaluation):.1f}" for evaluation in (evaluations[0], best)),
        *(f"{best['checkpoint_step']:,}", f"{mean(evaluations[-1]):.1f}", *reached),
        *(f"{metrics[name] / 60:.1f}" for name in ("seconds", "cpu_seconds")),
        f"{metrics['decisions_per_s']:,.0f}",
    ]


def note(runs: list[dict]) -> str:
    """Return the note below the table."""
    config = runs[0]["config"]["pixels"]
    games = len(runs[0]["metrics"]["evaluations"][0]["returns"])
    return (
        f"{config['game']}, {config['total_timesteps']:,} decisions of "
        f"{config['frame_skip']} frames. Returns are means of {games} greedy games from seeds that "
        f"are the same each time, every {config['eval_freq']:,} decisions, during the "
        "training. Their time is included."
    )


def plot(path: Path, runs: list[dict], game: str, level: float | None) -> None:
    """Draw each training's evaluations over its decisions."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter

    with plot_style():
        figure = Figure((8, 3.6))
        axes = figure.subplots()
        for place, run in enumerate(runs):
            evaluations = run["metrics"]["evaluations"]
            axes.plot(
                *([e["checkpoint_step"] for e in evaluations], [mean(e) for e in evaluations]),
                *(_DASHES[place % 3],),
                color=_COLOURS[place % 3],
                marker=".",
                label=f"seed {run['config']['pixels']['seed']}",
            )
        if level is not None:
            axes.axhline(level, color=GRID)
        axes.set(xlabel="decisions", ylabel="mean return, greedy")
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.legend(frameon=False)
        said = f"Mean return of greedy games of {game}, over the decisions of {len(runs)} trainings"
        save(figure, path, Caption("Learning from pixels", said, "{}"))


if __name__ == "__main__":
    main()
