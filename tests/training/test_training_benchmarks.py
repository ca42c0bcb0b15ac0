"""The benchmarks of training compare trainings that learn, and report their true figures."""

import pytest

torch = pytest.importorskip("torch", reason="takes PyTorch, which is no requirement")
torch.set_num_threads(1)
pytest.importorskip("stable_baselines3", reason="its wrappers are compared with")
pytest.importorskip("ale_py", reason="Pong is ALE's")

from benchmarks.training import book, plain_dqn  # noqa: E402
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
