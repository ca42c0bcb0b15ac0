"""The benchmarks of training compare trainings that learn, and report their true figures."""

import csv
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch", reason="takes PyTorch, which is no requirement")
torch.set_num_threads(1)
pytest.importorskip("stable_baselines3", reason="its wrappers are compared with")
pytest.importorskip("ale_py", reason="Pong is ALE's")

from benchmarks.training import ablation, book, plain_dqn  # noqa: E402
from goalreel.training.dqn.training import Metrics  # noqa: E402
from goalreel.training.pixels import training  # noqa: E402


@pytest.mark.parametrize("row", ["three", "wrappers_parallel", "goalreel"])
def test_book_row_is_timed_while_it_learns(monkeypatch, row):
    """The trainings use one process, two processes, and goalreel."""
    monkeypatch.setattr(training, "Trainer", training.Trainer)  # restored afterwards
    monkeypatch.setattr(plain_dqn, "use_fastest_threads", lambda _: None)
    for name, value in {"START": 66, "WARM": 12, "MEASURED": 24}.items():
        monkeypatch.setattr(book, name, value)
    measured = book.measure(row)
    assert 24 <= measured.decisions < 24 + 60
    assert 0 < measured.cpu_ms < 10_000 and measured.wall > 0


def test_ablation_rows_are_medians_and_changes():
    """A training that does not solve the environment has no time."""

    def runs(rate, *ends):
        return [
            Metrics(
                round(rate * seconds), 12 * round(rate * seconds), seconds, seconds, (), (last,)
            )
            for seconds, last in ends
        ]

    found = {"baseline": runs(500, (60.0, -105.0), (90.0, -101.0), (120.0, -109.0))}
    found["fast"] = runs(2000, (9.0, -105.0), (12.0, -105.0), (20.0, -150.0))
    found["environments_3"] = runs(450, (80.0, -150.0), (90.0, -150.0), (50.0, -105.0))
    shown = [ablation.cells_of(variant, found)[1:] for variant in found]
    assert shown[0] == ["500", "-", "6,000", "90.0", "90.0", "-", "3 of 3", "-105.0"]
    assert shown[1] == ["2,000", "+300.0%", "24,000", "12.0", "12.0", "-86.7%", "2 of 3", "-105.0"]
    assert shown[2][4:7] == ["not solved", "-", "1 of 3"]


def test_ablation_trains_each_variant_once_per_seed(tmp_path, monkeypatch):
    short = {n: replace(s, total_timesteps=60) for n, s in ablation.VARIANTS.items()}
    monkeypatch.setattr(ablation, "VARIANTS", short)
    ablation.main(["--runs", "1", "--output", str(tmp_path)])
    with (tmp_path / "ablation.csv").open(encoding="utf-8", newline="") as table:
        rows = list(csv.DictReader(table))
    assert [row["Step"] for row in rows] == list(ablation.TITLES.values())
    assert {(row["Solved"], row["Mean return"]) for row in rows} == {("0 of 1", "-200.0")}
