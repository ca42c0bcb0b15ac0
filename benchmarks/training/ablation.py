"""Deep Q-learning's ablation table, by the workflow itself: which of the known speed-ups helps.

Every variant is trained from the same seeds, one run after another, seed by seed, so that a slow
spell of the machine meets all of them. The table is that of `snakemake training`; below it stands
how many of five seeds the baseline and `fast` solve. Printed, and written to ablation.csv (a row
for each training) and ablation.md; the plots to training_bars.svg and training_curves.svg in
docs/images.

    python -m benchmarks.training.ablation              all variants, seeds 1 to 3, and to 5 for two
    python -m benchmarks.training.ablation --folder F   in F, where what is made already is kept
"""

import argparse
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path

from benchmarks.sample import RESULTS, ROOT
from benchmarks.table import available_cores, describe_machine
from benchmarks.timed_run import timed_run
from goalreel.training.dqn.comparison import as_markdown, rows_of, runs_as_csv
from goalreel.training.dqn.metrics import SOLVED, Metrics, read_metrics
from goalreel.training.dqn.settings import VARIANTS

TWO = ("baseline", "fast")
_POLICY = "results/train/{variant}/{seed}/policy.pt"


def main(argv: list[str] | None = None) -> None:
    """Train, print and write the table."""
    options = parse(argv)
    with tempfile.TemporaryDirectory(prefix="goalreel-ablation-") as name:
        folder = options.folder or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        for seed in options.seeds:
            train(folder, options, [(variant, seed) for variant in VARIANTS])
        more = [(variant, seed) for seed in options.more for variant in TWO]
        train(folder, options, more)
        compared = [metrics_in(folder, v, s) for v in VARIANTS for s in options.seeds]
        trainings = [*compared, *(metrics_in(folder, *training) for training in more)]
        make(folder, options, ["training"])
        for plot in ("bars", "curves"):
            made = folder / "results" / "training" / f"{plot}.svg"
            shutil.copyfile(made, ROOT / "docs" / "images" / f"training_{plot}.svg")
    table = as_markdown(rows_of(compared)) + "\n" + notes(trainings, options)
    print(table)
    output = RESULTS
    (output / "ablation.csv").write_text(runs_as_csv(trainings), encoding="utf-8")
    (output / "ablation.md").write_text(table, encoding="utf-8")


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Return the options of a command line."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = options.add_argument
    add("--seeds", type=int, nargs="+", default=[1, 2, 3], help="of every variant")
    add("--more", type=int, nargs="*", default=[4, 5], help="of baseline and fast besides")
    add("--frames", type=int, default=120_000, help="of a training")
    add("--cores", type=int, default=available_cores(), help="of a run")
    add("--folder", type=Path, help="where the runs work (a temporary folder)")
    return options.parse_args(argv)


def train(folder: Path, options: argparse.Namespace, trainings: list[tuple[str, int]]) -> None:
    """Make the policies of (variant, seed) pairs, one at a time, in their order."""
    for variant, seed in trainings:
        make(folder, options, [_POLICY.format(variant=variant, seed=seed)])
        print(metrics_in(folder, variant, seed), flush=True)


def make(folder: Path, options: argparse.Namespace, targets: list[str]) -> None:
    """Run the workflow for its targets."""
    dqn = f"dqn={{frames: {options.frames}, seeds: {options.seeds}}}"
    timed_run(folder, options.cores, [dqn], {}, targets)


def metrics_in(folder: Path, variant: str, seed: int) -> Metrics:
    """Return the metrics of a training that was made."""
    policy = folder / _POLICY.format(variant=variant, seed=seed)
    return read_metrics(policy.with_name("metrics.json"))


def notes(trainings: list[Metrics], options: argparse.Namespace) -> str:
    """Return the notes below the table: the two over more seeds, and the machine."""
    lines = []
    for variant in TWO:
        group = [metrics for metrics in trainings if metrics.variant == variant]
        solved = sum(metrics.best >= SOLVED for metrics in group)
        best = ", ".join(f"{metrics.best:.1f}" for metrics in group)
        last = ", ".join(f"{metrics.last:.1f}" for metrics in group)
        lines.append(
            f"`{variant}` over {len(group)} seeds: an evaluation of {SOLVED:.0f} or better in "
            f"{solved}; best mean returns {best}; last {last}."
        )
    lines.append(
        f"{options.frames:,} frames a training, one training after another, seed by seed. "
        f"Machine: PyTorch {version('torch')}; {describe_machine(options.cores)}."
    )
    return "".join(f"- {line}\n" for line in lines)


if __name__ == "__main__":
    main()
