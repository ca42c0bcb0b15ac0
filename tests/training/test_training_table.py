"""The comparison of trainings: medians against the baseline's, bands that hold, plots that tell."""

import csv
import io
import json

import numpy as np
import pytest

import training_table as stage
from goalreel.errors import GoalreelError, Unusable
from goalreel.files.svg_plot import read_caption
from goalreel.provenance.spec import canonical, common_digest, parse_spec
from goalreel.training.dqn.comparison import (
    HEADER,
    TITLES,
    as_csv,
    as_markdown,
    band,
    curves_of,
    rows_of,
)
from goalreel.training.dqn.metrics import Metrics, read_metrics, write_metrics
from goalreel.training.dqn.settings import VARIANTS

CHECKPOINTS = (5000, 10000)


def training(variant, seed, fps, solved, last=-105.0):
    """Return the metrics of a training that took `solved` seconds to solve, or never did."""
    frames = None if solved is None else 10_000
    means = (-200.0, last)
    clock = (5000 / fps, 10_000 / fps)
    figures = (10_000, 10_000 / fps, fps, frames, solved, max(means), last)
    return Metrics(variant, seed, variant != "parallel", *figures, CHECKPOINTS, clock, means)


SOLVED_AFTER = {  # fps and seconds of three seeds
    "baseline": ((400.0, 60.0), (500.0, 90.0), (900.0, 120.0)),
    "fast": ((2000.0, 9.0), (2500.0, 12.0), (2400.0, None)),
    "parallel": ((450.0, None), (450.0, None), (450.0, 50.0)),
}
TRAININGS = [
    training(variant, seed, *figures)
    for variant, group in SOLVED_AFTER.items()
    for seed, figures in enumerate(group, start=1)
]


def test_rows_are_medians_and_changes_against_the_baseline():
    baseline, fast, parallel = rows_of(TRAININGS)
    assert vars(baseline) | {"fps": 500, "minutes": 1.5, "faster": None, "longer": None} == vars(
        baseline
    )
    assert (fast.fps, fast.faster, fast.solved, fast.runs) == (2400, 3.8, 2, 3)
    assert fast.minutes == 0.2 and fast.longer == pytest.approx(0.2 / 1.5 - 1)
    assert parallel.minutes is None and parallel.longer is None, "two of three never solved it"
    assert parallel.cells()[3:6] == ("not solved", "-", "1 of 3")
    assert fast.cells()[1:] == ("2,400", "+380%", "0.20", "-86.7%", "2 of 3", "-105.0")
    without = rows_of(TRAININGS[3:])
    assert all(row.faster is None for row in without), "nothing to compare with"


def test_tables_show_the_rows():
    rows = rows_of(TRAININGS)
    lines = as_markdown(rows).splitlines()
    assert [cell.strip() for cell in lines[0].split("|")[1:-1]] == list(HEADER)
    assert lines[2] == "| Baseline | 500 | - | 1.50 | - | 3 of 3 | -105.0 |"
    assert "the median of 3 trainings" in lines[-1]
    assert "Not deterministic" in lines[-1] and lines[-1].endswith(": Parallel version.")
    assert "deterministic" not in as_markdown(rows[:2])
    figures = list(csv.DictReader(io.StringIO(as_csv(rows))))
    assert [float(row["fps"]) for row in figures] == [500, 2400, 450]
    assert figures[0]["faster"] == figures[2]["minutes"] == ""


def test_every_variant_has_a_title():
    assert set(TITLES) == set(VARIANTS)


def test_the_band_covers_the_mean_as_often_as_it_says():
    """Against the normal distribution, whose mean is known: nearly 95 times in 100."""
    rng = np.random.default_rng(5)
    values = rng.normal(size=(30, 400))
    low, high = band(values)
    covered = ((low < 0) & (high > 0)).mean()
    assert 0.89 < covered < 0.97 and (low < values.mean(axis=0)).all()
    again = band(values)
    assert np.array_equal(low, again[0]) and np.array_equal(high, again[1])


def test_curves_are_of_all_seeds():
    curve = curves_of([training("fast", s, 1000.0, 5.0, last=-100.0 - s) for s in (1, 2, 3)])[0]
    assert curve.mean.tolist() == [-200, -102] and curve.seeds == 3
    assert curve.frames.tolist() == list(CHECKPOINTS) and curve.minutes == pytest.approx(
        [5 / 60, 10 / 60]
    )
    assert curve.low[0] == curve.high[0] == -200, "all seeds agree"
    assert -103 <= curve.low[1] < -102 < curve.high[1] <= -101


def written(folder, metrics):
    """Write the results of a training without one; return its metrics.json."""
    folder = folder / metrics.variant / str(metrics.seed)
    folder.mkdir(parents=True)
    (folder / "log.csv").write_text("kind\n")
    spec = {"stage": "dqn", "config": {"variant": metrics.variant, "train.seed": metrics.seed}}
    write_metrics(folder / "metrics.json", metrics, parse_spec(canonical(spec)), folder / "log.csv")
    return folder / "metrics.json"


def test_metrics_come_back_whole_or_not_at_all(tmp_path):
    path = written(tmp_path, TRAININGS[5])
    assert read_metrics(path) == TRAININGS[5]
    text = path.read_text()
    path.write_text(text.replace("2400", "9400"))
    with pytest.raises(Unusable, match="corrupt"):
        read_metrics(path)
    with pytest.raises(GoalreelError, match="no such file"):
        read_metrics(tmp_path / "none.json")


def test_the_stage_writes_tables_and_plots(tmp_path):
    paths = [written(tmp_path, metrics) for metrics in TRAININGS]
    made_of = {
        f"dqn {m.variant} {m.seed}": common_digest(json.loads(path.read_text()))
        for m, path in zip(TRAININGS, paths, strict=True)
    }
    config = {"dqn.variants": list(SOLVED_AFTER), "dqn.seeds": [1, 2, 3]}
    spec = {"stage": "training_table", "config": config, "made_of": made_of}
    names = ["runs.csv", "table.csv", "table.md", "bars.svg", "curves.svg", "SHA256SUMS"]
    files = [str(tmp_path / "made" / name) for name in names]

    def run(spec):
        stage.main([*files, "--spec", canonical(spec), "--metrics", str(paths[0])])

    run(spec)
    runs = list(csv.DictReader(io.StringIO((tmp_path / "made" / "runs.csv").read_text())))
    assert (
        len(runs) == 9 and runs[5]["solved_seconds"] == "" and runs[0]["solved_seconds"] == "60.0"
    )
    assert [row["deterministic"] for row in runs] == 6 * ["True"] + 3 * ["False"]
    bars, curves = (read_caption(tmp_path / "made" / name) for name in ("bars.svg", "curves.svg"))
    assert "Baseline: 500 FPS, 1.50 minutes" in bars.description
    assert "Parallel version: 450 FPS, not solved" in bars.description
    assert "over 3 seeds with a 95% band" in curves.description
    assert json.loads(curves.spec)["made_of"] == made_of
    with pytest.raises(Unusable, match="other options, code or tools"):
        run(spec | {"made_of": made_of | {"dqn fast 3": "0" * 64}})
