"""The ablation of deep Q-learning on Mountain Car's state, by the workflow: which speed-up helps.

Trainings run one after another, seed by seed, so that a slow hour of the machine slows all alike.
The table ablation.md is that of `snakemake training` with the machine below it; ablation.csv has a
row for each training. The plots are docs/images/training_bars.svg and training_curves.svg.

    python -m benchmarks.training.ablation              all variants, five seeds: 15 minutes
    python -m benchmarks.training.ablation --folder F   in F, which keeps the files, to resume
"""

import shutil
import tempfile
from pathlib import Path

from benchmarks.harness import ROOT, available_cores, describe_machine, parser, run_workflow
from goalreel.training.dqn.comparison import as_markdown, rows_of, runs_as_csv
from goalreel.training.dqn.metrics import read_metrics
from goalreel.training.dqn.settings import VARIANTS, Settings


def main(argv: list[str] | None = None) -> None:
    """Train, print and write the table."""
    add = (options := parser(__doc__)).add_argument
    add("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5], help="of every variant")
    add("--decisions", type=int, default=Settings.decisions, help="of a training, at most")
    add("--folder", type=Path, help="where the runs work (a temporary folder)")
    add("--images", type=Path, default=ROOT / "docs" / "images", help="folder for the plots")
    chosen = options.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="goalreel-ablation-") as name:
        folder = chosen.folder or Path(name)
        dqn = f"dqn={{decisions: {chosen.decisions}, seeds: {chosen.seeds}}}"

        def make(target: str) -> None:
            run_workflow(folder, available_cores(), [dqn], folder / "cache", [target])

        def policy(variant: str, seed: int) -> str:
            return f"results/train/{variant}/{seed}/policy.npz"

        def metrics(variant: str, seed: int):
            return read_metrics((folder / policy(variant, seed)).with_name("metrics.json"))

        for seed in chosen.seeds:
            for variant in VARIANTS:
                make(policy(variant, seed))
                print(metrics(variant, seed), flush=True)
        trainings = [metrics(variant, seed) for variant in VARIANTS for seed in chosen.seeds]
        make("training")
        for plot in ("bars", "curves"):
            path = folder / "results" / "training" / f"{plot}.svg"
            shutil.copyfile(path, chosen.images / f"training_{plot}.svg")
    machine = describe_machine(("torch", "numpy", "gymnasium"))
    table = as_markdown(rows_of(trainings)) + (
        f"\n- A training gives up after {chosen.decisions:,} decisions. One training after "
        f"another, seed by seed.\n- Machine: {machine}.\n"
    )
    print(table)
    (chosen.output / "ablation.csv").write_text(runs_as_csv(trainings), encoding="utf-8")
    (chosen.output / "ablation.md").write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main()
