"""Trainings by target `train`: a table of their results, and the curves of their evaluations.

The trainings are the workflow's own, one after another, with all cores to themselves:

    for seed in 1 2 3; do
        snakemake train --config env=ALE/Pong-v5 results=pong-$seed "train={seed: $seed}"
    done
    python -m benchmarks.training.learned pong pong-*/train/metrics.json

The table is learned_NAME.csv and learned_NAME.md. The plot is docs/images/learned_NAME.svg. Both
have returns, or for Mario the percentage of games that reach the flag.
"""

import json
from pathlib import Path

from benchmarks.harness import ROOT, TRAINING_PACKAGES, parser, write_table
from goalreel.files.svg_plot import FILL, GRID, INK, MARK, Caption, plot_style, save

# Mean returns, or percentages of successes, at which an environment is learned.
LEVELS = {"ALE/Pong-v5": 18, "ALE/Breakout-v5": 10, "MountainCar-v0": -130, "CartPole-v1": 475,
          "LunarLander-v3": 200, "SuperMarioBros-1-1-v0": 70}  # fmt: skip
HEADER = ("seed", "untrained", "best", "at decisions", "last", "decisions to {level}",
          "minutes to {level}", "minutes", "CPU minutes", "decisions/s")  # fmt: skip


def main(argv: list[str] | None = None) -> None:
    """Read the metrics of trainings, and write the table and the curves."""
    add = (options := parser(__doc__)).add_argument
    add("name", help="name of the table and the plot")
    add("metrics", type=Path, nargs="+", help="metrics.json of each training")
    add("--images", type=Path, default=ROOT / "docs" / "images", help="folder for the plot")
    options = options.parse_args(argv)
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in options.metrics]
    runs.sort(key=lambda run: run["config"]["train"]["seed"])
    (env,) = {run["config"]["env"] for run in runs}
    level = LEVELS.get(env)
    header = [column.format(level="-" if level is None else level) for column in HEADER]
    rows = [row_of(run, level) for run in runs]
    path = options.output / f"learned_{options.name}"
    write_table(path, header, rows, [note(runs)], 0, TRAINING_PACKAGES)
    plot(options.images / f"learned_{options.name}.svg", runs, env)


def scores(run: dict) -> list[float]:
    """Return the mean return of each evaluation, or the percentage of successes of Mario."""
    is_mario = "Mario" in run["config"]["env"]
    name, factor = ("successes", 100) if is_mario else ("returns", 1)
    evaluations = run["metrics"]["evaluations"]
    return [factor * sum(found[name]) / len(found[name]) for found in evaluations]


def row_of(run: dict, level: float | None) -> list[str]:
    """Return the cells of a training."""
    metrics, means = run["metrics"], scores(run)
    steps = [evaluation["decisions"] for evaluation in metrics["evaluations"]]
    best = steps.index(metrics["best"])
    place = next((n for n, mean in enumerate(means) if level is not None and mean >= level), None)
    reached = "", ""
    if place is not None:
        minutes = metrics["evaluations"][place]["seconds"] / 60
        reached = f"{steps[place]:,}", f"{minutes:.1f}"
    return [
        str(run["config"]["train"]["seed"]),
        f"{means[0]:.1f}" if steps[0] == 0 else "",
        *(f"{means[best]:.1f}", f"{steps[best]:,}", f"{means[-1]:.1f}", *reached),
        *(f"{metrics[name] / 60:.1f}" for name in ("seconds", "cpu_seconds")),
        f"{metrics['decisions_per_s']:,.0f}",
    ]


def note(runs: list[dict]) -> str:
    """Return the note below the table."""
    env, algorithm = runs[0]["config"]["env"], runs[0]["config"]["train"]["algorithm"].upper()
    figures = "Figures are percentages of" if "Mario" in env else "Returns are means of"

    def values(name: str) -> str:
        return " or ".join(f"{n:,}" for n in sorted({run["config"]["train"][name] for run in runs}))

    return (
        f"{env}, {algorithm}, processes: {values('processes')}, up to {values('total_timesteps')} "
        f"decisions of {values('frame_skip')} steps. {figures} {values('n_eval_episodes')} greedy "
        f"games from seeds that are the same each time, every {values('eval_freq')} decisions, "
        "during the training. Their time is included."
    )


def plot(path: Path, runs: list[dict], env: str) -> None:
    """Draw each training's evaluations over its decisions."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter

    with plot_style():
        figure = Figure((8, 3.6))
        axes = figure.subplots()
        for run, color, line in zip(runs, (FILL, MARK, INK), (".-", ".--", ".-."), strict=False):
            steps = [evaluation["decisions"] for evaluation in run["metrics"]["evaluations"]]
            label = f"seed {run['config']['train']['seed']}"
            axes.plot(steps, scores(run), line, color=color, label=label)
        if env in LEVELS:
            axes.axhline(LEVELS[env], color=GRID)
        kind = "games with a flag, %" if "Mario" in env else "mean return"
        axes.set(xlabel="decisions", ylabel=f"{kind}, greedy")
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.legend(frameon=False)
        text = f"Evaluations of {env}: {kind}, over the decisions of {len(runs)} trainings"
        save(figure, path, Caption("Learning", text, "{}"))


if __name__ == "__main__":
    main()
