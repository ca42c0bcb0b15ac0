"""Deep Q-learning's ablation on Mountain Car's state, by the workflow itself: which speed-up helps.

Every variant is trained from the same seeds, one training after another, seed by seed, so that a
slow spell of the machine meets all of them. Printed, and written to ablation.csv (a row for each
training) and ablation.md, which is the table of `snakemake training` with the machine below it; the
plots to training_bars.svg and training_curves.svg in docs/images.

    python -m benchmarks.training.ablation              all variants, five seeds: about 15 minutes
    python -m benchmarks.training.ablation --folder F   in F, which keeps what is made, to resume
"""

import argparse
import shutil
import tempfile
from pathlib import Path

from benchmarks.sample import RESULTS, ROOT
from benchmarks.table import available_cores, describe_machine
from benchmarks.timed_run import timed_run
from goalreel.training.dqn.comparison import as_markdown, rows_of, runs_as_csv
from goalreel.training.dqn.metrics import Metrics, read_metrics
from goalreel.training.dqn.settings import VARIANTS, Settings

_POLICY = "results/train/{variant}/{seed}/policy.pt"


def main(argv: list[str] | None = None) -> None:
    """Train, print and write the table."""
    options = parse(argv)
    with tempfile.TemporaryDirectory(prefix="goalreel-ablation-") as name:
        folder = options.folder or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        for seed in options.seeds:
            for variant in VARIANTS:
                make(folder, options, _POLICY.format(variant=variant, seed=seed))
                print(metrics_in(folder, variant, seed), flush=True)
        trainings = [metrics_in(folder, v, s) for v in VARIANTS for s in options.seeds]
        make(folder, options, "training")
        for plot in ("bars", "curves"):
            made = folder / "results" / "training" / f"{plot}.svg"
            shutil.copyfile(made, options.images / f"training_{plot}.svg")
    machine = describe_machine(options.cores, ("torch", "numpy", "gymnasium"))
    table = as_markdown(rows_of(trainings)) + (
        f"\n- A training gives up after {options.decisions:,} decisions. One training after "
        f"another, seed by seed.\n- Machine: {machine}.\n"
    )
    print(table)
    (options.output / "ablation.csv").write_text(runs_as_csv(trainings), encoding="utf-8")
    (options.output / "ablation.md").write_text(table, encoding="utf-8")


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Return the options of a command line."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = options.add_argument
    add("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5], help="of every variant")
    add("--decisions", type=int, default=Settings.decisions, help="of a training, at most")
    add("--cores", type=int, default=available_cores(), help="of a run")
    add("--folder", type=Path, help="where the runs work (a temporary folder)")
    add("--output", type=Path, default=RESULTS, help="folder for the tables")
    add("--images", type=Path, default=ROOT / "docs" / "images", help="folder for the plots")
    return options.parse_args(argv)


def make(folder: Path, options: argparse.Namespace, target: str) -> None:
    """Run the workflow for a target."""
    dqn = f"dqn={{decisions: {options.decisions}, seeds: {options.seeds}}}"
    timed_run(folder, options.cores, [dqn], {}, [target])


def metrics_in(folder: Path, variant: str, seed: int) -> Metrics:
    """Return the metrics of a training that was made."""
    policy = folder / _POLICY.format(variant=variant, seed=seed)
    return read_metrics(policy.with_name("metrics.json"))


if __name__ == "__main__":
    main()
