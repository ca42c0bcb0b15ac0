"""The benchmarks of training compare trainings that learn, and report their true figures."""

import pytest

torch = pytest.importorskip("torch", reason="takes PyTorch, which is no requirement")
torch.set_num_threads(1)
pytest.importorskip("stable_baselines3", reason="its wrappers are compared with")
pytest.importorskip("ale_py", reason="Pong is ALE's")

from benchmarks.training import book, plain_dqn  # noqa: E402
from goalreel.training.pixels import training  # noqa: E402


@pytest.mark.parametrize("vector", [False, True])
def test_plain_replay_samples_observed_stacks(vector):
    """The samples also span the end of the buffer, where new steps overwrite old ones."""
    settings = plain_dqn.Settings(envs=2, vector=vector, buffer=60, exploration=0)
    player = plain_dqn.Player(settings, plain_dqn.QNetwork("small", 4, 6), 1)
    replay, shown = plain_dqn.Replay(settings), []
    for _ in range(70):
        shown.append(player.step(0))
        replay.append(*shown[-1])
    obs, actions, _, _, next_obs = (part.numpy() for part in replay.sample(50, player._rng))
    steps = {
        (before[0][env].tobytes(), after[0][env].tobytes(), int(before[1][env]))
        for before, after in zip(shown, shown[1:], strict=False)
        for env in range(2)
    }
    for stack, next_stack, action in zip(obs, next_obs, actions, strict=True):
        assert (stack.tobytes(), next_stack.tobytes(), int(action)) in steps


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
