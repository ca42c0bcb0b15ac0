"""The comparison of trainings: medians against the baseline, exact bands, and plots."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest

from goalreel.errors import GoalreelError, UnusableFileError
from goalreel.files.svg_plot import read_caption
from goalreel.provenance.spec import canonical, common_digest, parse_spec
from goalreel.training.dqn.comparison import (
    HEADER,
    TITLES,
    as_markdown,
    cells_of,
    table_of_runs,
    table_of_variants,
)
from goalreel.training.dqn.metrics import Metrics, read_metrics, write_metrics
from goalreel.training.dqn.plots import band
from goalreel.training.dqn.settings import VARIANTS
from training_table import training_table as stage


def training(variant, seed, rate, seconds, solved=True, load=1.0):
    """Return the metrics of a training with a given speed and duration."""
    decisions = round(rate * seconds)
    means = (-200.0, -105.0 if solved else -150.0)
    figures = (decisions, 12 * decisions, seconds, 0.98 * seconds, load, 2)
    return Metrics(variant, seed, *figures, (decisions // 2, decisions), means)


TRAININGS = [
    training(variant, seed, *figures)
    for variant, group in {
        "fast": ((2000.0, 9.0), (2500.0, 12.0), (2400.0, 20.0, False)),
        "baseline": ((400.0, 60.0), (500.0, 90.0), (900.0, 120.0)),
        "environments_3": ((450.0, 80.0, False), (450.0, 90.0, False, 2.5), (450.0, 50.0)),
    }.items()
    for seed, figures in enumerate(group, start=1)
]


def rows_of(trainings):
    return table_of_variants(table_of_runs(trainings))


def test_rows_are_medians_and_changes_against_the_baseline():
    fast, baseline, several = rows_of(TRAININGS).itertuples()
    assert (baseline.rate, baseline.frames_rate, baseline.seconds) == (500, 6000, 90)
    assert np.isnan([baseline.faster, baseline.longer]).all()
    assert (fast.rate, fast.faster, fast.solved, fast.runs) == (2400, 3.8, 2, 3)
    assert fast.seconds == 12 and fast.longer == pytest.approx(12 / 90 - 1)
    assert np.isnan([several.seconds, several.longer]).all(), "two of three never solved it"
    assert cells_of(several)[5:8] == ("not solved", "-", "1 of 3")
    shown = "2,400", "+380%", "28,800", "11.8", "12.0", "-86.7%", "2 of 3", "-105.0"
    assert cells_of(fast)[1:] == shown
    alone = rows_of(TRAININGS[:3]).iloc[0]
    assert np.isnan([alone.faster, alone.longer]).all(), "nothing to compare with"


def test_tables_show_all_rows():
    rows = rows_of(TRAININGS)
    lines = as_markdown(rows).splitlines()
    assert [cell.strip() for cell in lines[0].split("|")[1:-1]] == list(HEADER)
    assert lines[3] == "| Baseline | 500 | - | 6,000 | 88.2 | 90.0 | - | 3 of 3 | -105.0 |"
    assert "Medians of 3 trainings" in lines[-1]


def test_table_marks_trainings_on_loaded_machine():
    """A load above the number of cores marks them, or processes that waited for a core."""
    lines = as_markdown(rows_of(TRAININGS)).splitlines()
    assert lines[4].startswith("| 3 environments \\* | ") and "\\*" not in lines[2] + lines[3]
    assert "In 1 of the 9 trainings the machine was loaded" in lines[-1]
    waited = replace(TRAININGS[0], cpu_seconds=0.8 * TRAININGS[0].seconds)
    assert waited.loaded and not TRAININGS[0].loaded
    assert str(waited).endswith("the machine was loaded")


def test_variants_have_titles():
    assert set(TITLES) == set(VARIANTS)


def test_band_covers_the_mean_at_its_level():
    """Samples of a normal distribution have a known mean, which lies in nearly 95 of 100 bands."""
    rng = np.random.default_rng(5)
    values = rng.normal(size=(30, 400))
    low, high = band(values)
    covered = ((low < 0) & (high > 0)).mean()
    assert 0.89 < covered < 0.97 and (low < values.mean(axis=0)).all()
    again = band(values)
    assert np.array_equal(low, again[0]) and np.array_equal(high, again[1])


def written(folder, metrics):
    """Write the results of a training without training, and return its metrics.json."""
    folder = folder / metrics.variant / str(metrics.seed)
    folder.mkdir(parents=True)
    (folder / "log.csv").write_text("kind\n")
    spec = {"stage": "dqn", "config": {"variant": metrics.variant, "train.seed": metrics.seed}}
    write_metrics(folder / "metrics.json", metrics, parse_spec(canonical(spec)), folder / "log.csv")
    return folder / "metrics.json"


def test_metrics_round_trip_or_raise(tmp_path):
    path = written(tmp_path, TRAININGS[2])
    assert read_metrics(path) == TRAININGS[2]
    text = path.read_text()
    path.write_text(text.replace("48000", "98000"))
    with pytest.raises(UnusableFileError, match="corrupt"):
        read_metrics(path)
    with pytest.raises(GoalreelError, match="No such file"):
        read_metrics(tmp_path / "none.json")


def test_stage_writes_tables_and_plots(tmp_path):
    paths = [written(tmp_path, metrics) for metrics in TRAININGS]
    input_digests = {
        f"{m.variant} {m.seed}": common_digest(json.loads(path.read_text()))
        for m, path in zip(TRAININGS, paths, strict=True)
    }
    config = {"dqn.variants": ["fast", "baseline", "environments_3"], "dqn.seeds": [1, 2, 3]}
    spec = {"stage": "training_table", "config": config, "input_digests": input_digests}
    names = ["runs.csv", "table.csv", "table.md", "curves.svg", "SHA256SUMS"]
    options = ["--runs", "--rows", "--table", "--curves", "--sums"]
    paired = zip(options, names, strict=True)
    files = [f"{option}={tmp_path / 'made' / name}" for option, name in paired]

    def run(spec):
        stage.main([*files, "--spec", canonical(spec), "--metrics", str(paths[0])])

    run(spec)
    runs = list(csv.DictReader(io.StringIO((tmp_path / "made" / "runs.csv").read_text())))
    assert len(runs) == 9 and [run["solved"] for run in runs] == [
        *("True", "True", "False", "True", "True", "True", "False", "False", "True")
    ]
    assert runs[7]["loaded"] == "True" and runs[0]["seconds"] == "9.0"
    curves = read_caption(tmp_path / "made" / "curves.svg")
    assert "over 3 seeds with a 95% band" in curves.description
    # Trainings of different lengths keep their last mean return: -105, -105 and -150.
    assert f"{TITLES['fast']} -120.0 (-150.0 to -105.0)" in curves.description
    assert json.loads(curves.spec)["input_digests"] == input_digests
    with pytest.raises(UnusableFileError, match="other options, code or tools"):
        run(spec | {"input_digests": input_digests | {"fast 3": "0" * 64}})
