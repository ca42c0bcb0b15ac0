"""The benchmarks of training compare trainings that learn, and report their true figures."""

import csv
import json

import pytest

torch = pytest.importorskip("torch", reason="takes PyTorch, which is no requirement")
torch.set_num_threads(1)
pytest.importorskip("stable_baselines3", reason="its wrappers are compared with")
pytest.importorskip("ale_py", reason="Pong is ALE's")

from benchmarks import harness  # noqa: E402
from benchmarks.harness import Stopwatch  # noqa: E402
from benchmarks.training import (  # noqa: E402
    ablation,
    book,
    learned,
    peers,
    plain_dqn,
    processes,
    to_score,
)


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as table:
        return list(csv.DictReader(table))


@pytest.mark.parametrize(
    ("module", "row"),
    [
        (book, "Wrappers + 3 environments"),
        (peers, "small 32 Stable-Baselines3"),
        (peers, "small 32 goalreel"),
    ],
)
def test_row_is_timed_while_it_learns(monkeypatch, module, row):
    monkeypatch.setattr(plain_dqn, "use_fastest_threads", lambda _: None)
    monkeypatch.setattr(module, "START", 64)
    stopwatch = Stopwatch(256, 24)
    module.ROWS[row](stopwatch)
    measured = stopwatch.measured()
    assert 24 <= measured.decisions <= 256  # goalreel looks every 256
    assert 0 < measured.cpu_ms < 10_000 and measured.wall > 0
    assert (measured.waited > 0) == ("goalreel" in row)


@pytest.mark.parametrize(
    ("module", "name", "shown"),
    [
        (peers, "training_peers", {"wall, ms a decision": "20.00", "ratio, CPU": "0.50"}),
        (book, "book", {"decisions/s": "50", "change": "-50.0%"}),
        (processes, "processes", {"batches/s": "0.8", "waiting": "25%", "ms of a sum": "320.00"}),
    ],
)
def test_table_compares_rows_of_each_run(monkeypatch, tmp_path, module, name, shown):
    """All rows take 10 ms a decision, but the last one takes twice as long."""

    def row_process(module_name, row):
        assert module_name == module.__name__
        times = 2 if row == list(module.ROWS)[-1] else 1
        values = {"wall": 10.0 * times, "cpu": 15.0 * times, "waited": 5.0}
        return values | {"decisions": 1000, "others": 0.1, "load": 1.0}

    monkeypatch.setattr(harness, "row_process", row_process)
    module.main(["--runs", "2", "--output", str(tmp_path)])
    last = rows_of(tmp_path / f"{name}.csv")[-1]
    assert {column: last[column] for column in shown} == shown


def test_ablation_rows_are_medians_and_changes():
    """A training that does not solve the environment has no time."""

    def runs(rate, *ends):
        return [
            ablation.Metrics(round(rate * s), 12 * round(rate * s), s, s, last) for s, last in ends
        ]

    found = {"Baseline": runs(500, (60.0, -105.0), (90.0, -101.0), (120.0, -109.0))}
    found["fast"] = runs(2000, (9.0, -105.0), (12.0, -105.0), (20.0, -150.0))
    found["slow"] = runs(450, (80.0, -150.0), (90.0, -150.0), (50.0, -105.0))
    shown = [ablation.cells_of(variant, found)[1:] for variant in found]
    assert shown[0] == ["500", "-", "6,000", "90.0", "90.0", "-", "3 of 3", "-105.0"]
    assert shown[1] == ["2,000", "+300.0%", "24,000", "12.0", "12.0", "-86.7%", "2 of 3", "-105.0"]
    assert shown[2][4:7] == ["not solved", "-", "1 of 3"]


def test_ablation_variants_play_equal_games():
    """Graphs of gradients and wrappers change times only."""
    short = {"total_timesteps": 255, "learning_starts": 250, "n_eval_episodes": 1}
    names = ("Baseline", "Without torch.no_grad()", "3 environments", "Wrappers + 3 environments")
    frames = [ablation.train(name, 1, **short).frames for name in names]
    assert frames[0] == frames[1] > 2500 and frames[2] == frames[3] > 2500


def test_score_ends_a_training_that_plays_well(monkeypatch):
    monkeypatch.setattr(plain_dqn, "greedy_returns", lambda act: torch.tensor([act, 18.0]))
    referee = to_score.Referee(limit=60)
    assert referee.going(99_999, [21.0], 21.0)  # not due yet
    assert referee.going(100_000, [9.0], 21.0)  # unlikely
    assert referee.going(200_000, [12.0], 16.0)
    assert not referee.going(300_000, [15.0], 20.0)
    assert referee.cells()[2:] == ["300,000", "19.0"]


def test_score_evaluates_a_training_at_its_limit(monkeypatch):
    monkeypatch.setattr(plain_dqn, "greedy_returns", lambda act: torch.tensor([-20.0]))
    referee = to_score.Referee(limit=0)
    assert not referee.going(1, [], None) and referee.cells()[3] == "-20.0"


def test_score_resumes_after_finished_trainings(monkeypatch, tmp_path):
    trained = []

    def row_process(_, name, *others):
        trained.append(name)
        return ["1.5", "3.0", "50,000", "18.2"]

    monkeypatch.setattr(to_score, "row_process", row_process)
    for runs in ("1", "2"):
        options = ["--runs", runs, "--only", "goalreel", "--output", str(tmp_path)]
        to_score.main(options)
    assert trained == ["goalreel/1", "goalreel/2"]
    rows = rows_of(tmp_path / "to_score.csv")
    assert [(row["seed"], row["minutes"], row["decisions"]) for row in rows] == [
        ("1", "1.5", "50000"),
        ("2", "1.5", "50000"),
    ]


@pytest.mark.parametrize("env", ["ALE/Pong-v5", "SuperMarioBros-1-1-v0"])
def test_learned_table_has_first_time_at_level(tmp_path, env):
    """The level of Mario is a percentage of successes, whatever its returns."""
    values = {
        **{"algorithm": "dqn", "total_timesteps": 300, "frame_skip": 4, "seed": 3},
        **{"n_eval_episodes": 2, "eval_freq": 100, "processes": 2},
    }
    scores = [(0, 0), (19, 1), (17, 0.5)]
    evaluations = [
        {
            **{"decisions": 100 * place, "seconds": 60.0 * place, "distances": None},
            **{"returns": [high, high], "successes": [share, share]},
        }
        for place, (high, share) in enumerate(scores)
    ]
    metrics = {"best": 100, "seconds": 180.0, "cpu_seconds": 360.0, "decisions_per_s": 2.0}
    metrics |= {"evaluations": evaluations}
    path = tmp_path / "metrics.json"
    path.write_text(json.dumps({"config": {"env": env, "train": values}, "metrics": metrics}))
    learned.main(["game", str(path), "--output", str(tmp_path), "--images", str(tmp_path)])
    (row,) = rows_of(tmp_path / "learned_game.csv")
    level = learned.LEVELS[env]
    assert (row[f"decisions to {level}"], row[f"minutes to {level}"]) == ("100", "1.0")
    assert (row["best"], row["CPU minutes"]) == ("100.0" if "Mario" in env else "19.0", "6.0")
    assert "<svg" in (tmp_path / "learned_game.svg").read_text()
