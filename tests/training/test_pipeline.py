"""A training from pixels learns from the played steps, stops, resumes and reports."""

import csv
import json
import re
import signal
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path
from unittest.mock import Mock, patch

import numpy as np
import pytest
import yaml
from project import REPOSITORY

torch = pytest.importorskip("torch", reason="takes PyTorch, which is no requirement")
torch.set_num_threads(1)  # the same sums, whatever the machine's cores

from test_collectors import Alone, taken  # noqa: E402

from goalreel import cli  # noqa: E402
from goalreel.errors import GoalreelError  # noqa: E402
from goalreel.files.svg_plot import read_caption  # noqa: E402
from goalreel.policies.network_file import PixelCheckpoints, read_checkpoints  # noqa: E402
from goalreel.policies.pixel_network import Actor  # noqa: E402
from goalreel.provenance.spec import parse_spec  # noqa: E402
from goalreel.training.games.settings import CAR  # noqa: E402
from goalreel.training.pixels import checkpoint  # noqa: E402
from goalreel.training.pixels.learner import PixelLearner  # noqa: E402
from goalreel.training.pixels.monitor import (  # noqa: E402
    COLUMNS,
    Monitor,
    plot_training,  # noqa: E402
    write_rows,
)
from goalreel.training.pixels.presets import PRESETS, with_defaults  # noqa: E402
from goalreel.training.pixels.settings import PipelineSettings  # noqa: E402
from goalreel.training.pixels.trainer import Trainer  # noqa: E402

GIVEN = yaml.safe_load("""
    {game: MountainCar-v0, frame_skip: 4, collectors: 1, n_envs: 3, total_timesteps: 1000,
     buffer_size: 1000, learning_starts: 100, exploration_fraction: 0.2, python: null,
     seed: 3, train_freq: 128, gradient_steps: 1, batch_size: 32, learning_rate: 0.001, n_step: 3,
     publish_every: 2, target_update_interval: 400, eval_freq: 500, n_eval_episodes: 2,
     checkpoints: [0, 400]}
""")
SECTION = with_defaults({**dict.fromkeys(PRESETS[CAR]), **GIVEN})
SETTINGS = PipelineSettings(**SECTION, autocast=False)
IDENTITY = {"game": "MountainCar-v0"}


class LockStep:
    """The parts of a training in one thread, one after another, which makes it reproducible."""

    def __init__(self):
        self.alone, self.trainer = Alone(1.0), new_trainer(1260)

    def turn(self) -> None:
        for _ in range(60):
            self.alone.collector.step()
        trainer = self.trainer
        while trainer.take_in([self.alone.ring]):
            pass
        games = taken(self.alone.episodes)
        trainer.ended(list(zip(games["return"].tolist(), games["distance"].tolist(), strict=True)))
        while trainer.is_due():
            assert trainer.update()
            trainer.queue_checkpoints(trainer.learned_steps, float(trainer.steps))
            while trainer.waiting:
                trainer.evaluated([-200.0 + trainer.learner.updates, -180.0])

    def stop_and_resume(self, path: Path) -> None:
        """Save the trainer, and replace it by another one that resumes."""
        one, other = self.trainer, new_trainer(1260)
        checkpoint.write_checkpoint(path, IDENTITY, one.learner, one.replay, one.progress())
        other.restore(checkpoint.resume(path, IDENTITY, other.learner, other.replay))
        assert same_replays(one, other)
        self.trainer = other


def new_trainer(decisions: int = 1000) -> Trainer:
    settings = PipelineSettings(**SECTION | {"total_timesteps": decisions, "autocast": False})
    trainer = Trainer(settings, PixelLearner(settings, 3, settings.seed))
    trainer._thread = Mock(submit=lambda call: call_when_needed(call))
    return trainer


def call_when_needed(call) -> Future:
    """Return a finished future that computes its result when it is asked."""
    future = Future()
    future.set_result(None)
    future.result = call
    return future


def same_replays(one: Trainer, other: Trainer) -> bool:
    state = other.replay.state()
    return all(torch.equal(t, state[name]) for name, t in one.replay.state().items())


def test_resumed_training_yields_uninterrupted_weights(tmp_path):
    """Both run in lock step, and the buffer wraps once. The collector plays on."""
    whole, stopped = LockStep(), LockStep()
    for turn in range(7):
        whole.turn()
        stopped.turn()
        if turn in (1, 4):
            stopped.stop_and_resume(tmp_path / "saved.pt")
    one, other = whole.trainer, stopped.trainer
    assert one.learner.updates == other.learner.updates == int((1260 - 100) / 128)
    assert one.steps == 1260 and int(one.replay.count.max()) > one.replay.size
    for name, weights in one.learner.weights().items():
        assert np.array_equal(weights, other.learner.weights()[name]), name
    assert same_replays(one, other)
    assert (one.games, one.recent) == (other.games, other.recent)
    assert one.evaluations == other.evaluations and one.best.checkpoint_step == 1000
    assert one.kept.keys() == other.kept.keys() == {0, 400, 1000}
    for step, kept in one.kept.items():
        assert all(np.array_equal(array, other.kept[step][name]) for name, array in kept.items())


def test_updates_are_due_by_the_training_frequency():
    trainer = new_trainer()
    due = {}
    for trainer.steps in (0, 99, 100, 227, 228):
        due[trainer.steps] = trainer.is_due()
    assert due == {0: False, 99: False, 100: False, 227: False, 228: True}
    assert trainer.update() is False, "there is nothing in the buffer"
    for updates, steps, learned in (0, 50, 50), (0, 900, 100), (2, 300, 300), (2, 900, 356):
        trainer.learner.updates, trainer.steps = updates, steps
        assert trainer.learned_steps == learned
    epsilons = [SETTINGS.epsilon(decisions) for decisions in (0, 100, 200, 4000)]
    assert epsilons == pytest.approx([1.0, 0.525, 0.05, 0.05])
    rates = [SETTINGS.rate_left(decisions) for decisions in (0, 500, 1000, 1064)]
    assert rates == pytest.approx([1.0, 0.55, 0.1, 0.1])


def test_training_keeps_best_evaluation_and_checkpoints():
    learner = Mock(device="cpu")
    with patch("goalreel.training.pixels.trainer.FrameReplay", return_value=Mock(device="cpu")):
        trainer = Trainer(PipelineSettings(**SECTION | {"total_timesteps": 2000}), learner)
    assert trainer.due == [0, 400, 500, 1000, 1500, 2000] and trainer.best is None
    for steps, mean in ((0, -200.0), (399, None), (420, -150.0), (1100, -120.0), (2000, -130.0)):
        learner.weights.return_value = {"of": np.array(steps)}
        trainer.queue_checkpoints(steps, float(steps))
        while trainer.waiting:
            trainer.evaluated([mean, mean])
    assert [one.checkpoint_step for one in trainer.evaluations] == [0, 400, 500, 1000, 1500, 2000]
    assert (trainer.best.checkpoint_step, trainer.best.mean) == (500, -120.0), "the earliest"
    kept = {step: int(weights["of"]) for step, weights in trainer.kept.items()}
    assert kept == {0: 0, 400: 420, 500: 1100, 2000: 2000}


def spec(**others) -> str:
    return json.dumps({"stage": "pixels", "config": {"pixels": SECTION | others}})


PROGRAM = f"""
import sys
sys.path.insert(0, {str(REPOSITORY / "scripts")!r})
from goalreel import cli
from goalreel.training.pixels import monitor
monitor.EVERY = 0.5
cli.run(cli.program('pixels').main)
"""


def command(folder: Path, **others) -> list[str]:
    """Return the command line of a training in a folder, with a frequent monitor."""
    names = {"policy": "policy.npz", "table": "monitor.csv", "metrics": "metrics.json"}
    names |= {"plot": "plot.svg", "saved": "saved.pt"}
    files = [f"--{option}={folder / name}" for option, name in names.items()]
    return [sys.executable, "-c", PROGRAM, *files, "--spec", spec(**others)]


def stopped_by(stop: signal.Signals, folder: Path, at: str) -> int:
    """Start a training in a folder, signal it at a line of its log, and return its frame count."""
    # The learner waits while the car acts at random.
    slow = {"train_freq": 3200, "total_timesteps": 10**9, "eval_freq": 10**9}
    with subprocess.Popen(command(folder, **slow), stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if re.search(at, line):
                process.send_signal(stop)
                break
        said = process.stderr.read()
    assert process.returncode == 1 and not (folder / "policy.npz").exists(), said
    told = re.search(rf"Stopped by {stop.name}\.\s+Saved after ([\d,]+) of 1,000,000,000 ", said)
    return int(told[1].replace(",", ""))


def rows_of(table: Path) -> list[dict[str, float]]:
    """Return the rows of a monitor's table."""
    with table.open(newline="") as stream:
        return [{k: float(v or "nan") for k, v in row.items()} for row in csv.DictReader(stream)]


@pytest.mark.slow
def test_stopped_training_saves_itself_and_resumes(tmp_path, capsys, monkeypatch):
    """The resumed training may have more frames, unlike other options."""
    monkeypatch.setattr("torch.set_num_threads", lambda count: None)
    first = stopped_by(signal.SIGTERM, tmp_path, r"decisions, .* [1-9]\d* updates")
    decisions = stopped_by(signal.SIGINT, tmp_path, f"resumed after {first:,} decisions")
    assert decisions >= first
    content = saved(tmp_path)
    count, steps = content["replay"]["count"], content["progress"]["trainer"]["steps"]
    assert steps == decisions and steps <= count.sum() <= 1.03 * steps + 3
    sampled = [row["decisions"] for row in rows_of(tmp_path / "saved.csv")]
    assert sampled[-1] == decisions and len(sampled) == len(content["progress"]["rows"]) >= 3

    pixels = cli.program("pixels")

    others = {"batch_size": 8, "publish_every": 3, "seed": 8, "target_update_interval": 5}
    named = [f"pixels.{name} is {SECTION[name]}, not {value}" for name, value in others.items()]
    with pytest.raises(GoalreelError, match=f"(?s)saved.pt: Cannot.*{', '.join(named)}"):
        pixels.main(command(tmp_path, **others)[3:])
    assert (tmp_path / "saved.pt").exists()
    more = decisions + 1000
    pixels.main(command(tmp_path, train_freq=3200, total_timesteps=more)[3:])
    assert f"saved.pt: resumed after {decisions:,} decisions" in capsys.readouterr().err
    assert not list(tmp_path.glob("saved.*"))
    told = json.loads((tmp_path / "metrics.json").read_text())["metrics"]
    assert told["sessions"] == 3 and told["decisions"] == more
    rows = rows_of(tmp_path / "monitor.csv")
    for name in ("seconds", "decisions", "updates", "samples", "episodes"):
        values = [row[name] for row in rows]
        assert values == sorted(values), f"{name} counts on"
    told = [row["decisions"] for row in rows]
    assert told[-1] == more and told[: len(sampled)] == sampled
    policy = read_checkpoints(tmp_path / "policy.npz", PixelCheckpoints)
    assert policy.checkpoint_steps[-1] == more and policy.game["game"] == "MountainCar-v0"
    values = Actor.of(policy.weights[-1]).values(np.zeros((2, 4, 84, 84), np.uint8))
    assert values.shape == (2, 3) and np.isfinite(values).all()
    assert read_caption(tmp_path / "plot.svg").title == "Training from pixels"


@pytest.mark.slow
def test_failing_training_saves_itself_and_reports(tmp_path, capsys, monkeypatch):
    pixels = cli.program("pixels")

    monkeypatch.setattr("torch.set_num_threads", lambda count: None)
    arguments = command(tmp_path, total_timesteps=10**9, eval_freq=10**9)[3:]
    learn = Trainer.update

    def out_of_memory(self):
        if self.learner.updates == 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return learn(self)

    monkeypatch.setattr(Trainer, "update", out_of_memory)
    with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
        pixels.main(arguments)
    said = capsys.readouterr().err
    assert re.search(r"The training failed\.\s+Saved after [\d,]+ of 1,000,000,000 decisions", said)
    assert saved(tmp_path)["learner"]["updates"] == 3
    assert len(rows_of(tmp_path / "saved.csv")) >= 1


def saved(folder: Path) -> dict:
    return torch.load(folder / "saved.pt", weights_only=True)


def sample(**others) -> dict:
    return dict.fromkeys(COLUMNS, 0) | others


def test_monitor_reports_rates_since_its_last_row(capsys, tmp_path):
    table, rows = tmp_path / "so_far.csv", [[0] * len(COLUMNS)]
    monitor = Monitor(sample(seconds=10.0, decisions=1000, blocked=1.5), 5000, rows, table)
    after = sample(seconds=14.0, decisions=3000, updates=8, blocked=3.5, learning=3.0)
    monitor.take(after | {"return": float("nan"), "loss": 0.12345678})
    row = dict(zip(COLUMNS, rows[-1], strict=True))
    rates = [row[name] for name in ("decisions_per_s", "updates_per_s", "blocked", "learning")]
    assert rates == [500, 2, 0.5, 0.75] and (row["return"], row["loss"]) == (None, 0.123457)
    said = capsys.readouterr().err
    assert "14 s: 3,000 of 5,000 decisions, 500/s; 8 updates, 2.00/s" in said
    assert "return -, " in said and "collectors blocked 50%, learner busy 75%" in said
    write_rows(tmp_path / "m.csv", rows)
    assert table.read_text() == (tmp_path / "m.csv").read_text()
    assert table.read_text().count("\n") == 3


def test_plot_accepts_any_monitor_table(tmp_path):
    for rows in ([], [[1] * len(COLUMNS)], [[1] * len(COLUMNS), [None] * len(COLUMNS)]):
        plot_training(tmp_path / "p.svg", rows, "a game", "{}")
        assert "a game" in read_caption(tmp_path / "p.svg").description


def test_policy_file_holds_the_evaluated_networks(tmp_path):
    from goalreel.training.pixels.session import Session
    from goalreel.training.pixels.training import write_results

    trainer = new_trainer()
    weights = trainer.learner.weights()
    trainer.waiting += [(step, step / 10, {n: a + step for n, a in weights.items()})
                        for step in (0, 400, 500, 1000)]  # fmt: skip
    for mean in (-200.0, -150.0, -120.0, -130.0):
        trainer.evaluated([mean])
    trainer.steps = 1000
    sums = {"sessions": 1, "seconds": 9.0, "learning": 4.0, "blocked": 3.0, "cpu_seconds": 8.0}
    session = Session(SETTINGS, {"game": "MountainCar-v0"}, trainer, sums, [], tmp_path / "t.csv")
    files = [tmp_path / name for name in ("p.npz", "m.csv", "m.json")]
    said = write_results(*files, session, parse_spec('{"config":{},"shard":{},"stage":"pixels"}'))
    assert "1,000 decisions in " in said and "best after 500 decisions and 50 s: mean ret" in said
    policy = read_checkpoints(files[0], PixelCheckpoints)
    assert (policy.checkpoint_steps, policy.actions) == ((0, 400, 500, 1000), 3)
    assert policy.means == (-200.0, -150.0, -120.0, -130.0)
    for step, stored in zip(policy.checkpoint_steps, policy.weights, strict=True):
        assert all(np.array_equal(stored[name], array + step) for name, array in weights.items())
    told = json.loads(files[2].read_text())["metrics"]
    assert told["best"] == 500 and told["evaluations"][1]["returns"] == [-150.0]
