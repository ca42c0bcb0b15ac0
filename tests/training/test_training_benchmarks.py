"""The benchmarks of training: what they compare does learn, and is counted and told as it was."""

import json
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="takes PyTorch, which is no requirement")
torch.set_num_threads(1)
pytest.importorskip("stable_baselines3", reason="its wrappers are compared with")
pytest.importorskip("ale_py", reason="Pong is ALE's")

from benchmarks.training import book, peers, plain_dqn  # noqa: E402
from benchmarks.training.rows import Measured  # noqa: E402
from goalreel.training.pixels import training  # noqa: E402


@pytest.mark.parametrize("vector", [False, True])
def test_the_plain_replay_samples_the_stacks_that_environments_showed(vector):
    """Also around its end, where old steps are overwritten."""
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
def test_a_row_of_the_book_is_timed_while_it_learns(monkeypatch, row):
    """One process, two processes, and goalreel's own."""
    monkeypatch.setattr(training, "Trainer", training.Trainer)  # put back afterwards
    monkeypatch.setattr(plain_dqn, "use_fastest_threads", lambda _: None)
    for name, value in {"START": 66, "WARM": 12, "MEASURED": 24}.items():
        monkeypatch.setattr(book, name, value)
    measured = book.measure(row)
    assert 24 <= measured.decisions < 24 + 60
    assert 0 < measured.cpu_ms < 10_000 and measured.wall > 0


def test_ratios_are_those_to_the_best_peer():
    """The peer of the least median, in each figure by itself."""
    seconds = {"Stable-Baselines3": (3, 2), "like CleanRL": (4, 3), "AtariVectorEnv": (2, 4),
               "goalreel": (1, 1), "goalreel, bfloat16": (0.5, 1)}  # fmt: skip
    found = {
        row: [Measured(1000, *seconds[name], 0.1, 1.0)] * 3
        for row, (*_, name) in peers.ROWS.items()
    }
    rows = {row[2]: row[3:] for row in peers.cells_of(*peers.GROUPS[0], found)}
    assert rows["goalreel"] == ["1.00", "2.00", "1.00", "2.00", "0.10"]
    assert rows["Stable-Baselines3"][1::2] == ["0.67", "1.00"]
    assert "2.00 to 2.00 times" in peers.notes(3, found)[0]


def test_a_curve_tells_the_minutes_until_thirty_games_had_18(tmp_path):
    """Of a training of goalreel's, by its own metrics."""
    evaluations = [
        {"age": 100 * n, "seconds": 60.0 * n, "returns": [mean, mean]}
        for n, mean in enumerate((-21.0, 17.5, 18.5, 20.0))
    ]
    metrics = tmp_path / "metrics.json"
    metrics.write_text(json.dumps({"metrics": {"evaluations": evaluations}}), encoding="utf-8")
    book.main(["--metrics", str(metrics), "--output", str(tmp_path)])
    assert book.minutes_to_solve(book.curve_of(tmp_path, "goalreel")) == "2"
    assert book.minutes_to_solve(book.curve_of(tmp_path, "baseline")) == ""


def test_greedy_returns_are_those_of_whole_games():
    """A network that always presses the same button loses each game by 21."""
    network = plain_dqn.QNetwork("small", 2, 6)
    for parameter in network.parameters():
        torch.nn.init.zeros_(parameter)
    settings = replace(book.BASELINE, vector=True, cheap=True)
    assert np.isclose(plain_dqn.greedy_returns(network, settings, games=2), -21.0)
