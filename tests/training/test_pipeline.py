"""A training from pixels: it learns from what was played, stops, goes on, and tells of itself."""

import csv
import hashlib
import json
import re
import signal
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from unittest.mock import Mock, patch

import numpy as np
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from project import REPOSITORY

torch = pytest.importorskip("torch", reason="takes PyTorch, which is no requirement")
torch.set_num_threads(1)  # the same sums, whatever the machine's cores

from test_collectors import Alone  # noqa: E402

from goalreel.errors import GoalreelError  # noqa: E402
from goalreel.files.svg_plot import read_caption  # noqa: E402
from goalreel.policies.pixel_checkpoints import read_pixel_checkpoints  # noqa: E402
from goalreel.provenance.spec import parse_spec  # noqa: E402
from goalreel.training.pixels import checkpoint  # noqa: E402
from goalreel.training.pixels.frame_replay_buffer import FrameReplay  # noqa: E402
from goalreel.training.pixels.learner import PixelLearner  # noqa: E402
from goalreel.training.pixels.monitor import (  # noqa: E402
    COLUMNS,
    Monitor,
    Sample,
    plot_training,  # noqa: E402
    write_rows,
)
from goalreel.training.pixels.replay_feeder import ReplayFeeder  # noqa: E402
from goalreel.training.pixels.settings import PipelineSettings  # noqa: E402
from goalreel.training.pixels.trainer import Trainer  # noqa: E402

SECTION = yaml.safe_load("""
    {game: MountainCar-v0, frame_skip: 4, warp: pillow, collectors: 1, environments: 3,
     frames: 4000, buffer: 1000, backpressure: block, python: null, seed: 3, replay_ratio: 0.25,
     batch: 16, accumulation: 2, learning_rate: 0.001, discount: 0.99, gradient_clip: 10.0,
     publish_every: 2, target_every: 3}
""")
SETTINGS = PipelineSettings(**SECTION)
HOW = SETTINGS.learner(compile=False, autocast=False)
IDENTITY = {"game": "MountainCar-v0"}


def digest(arrays) -> str:
    """Return the sha256 of arrays by name."""
    told = hashlib.sha256()
    for name in sorted(arrays):
        told.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return told.hexdigest()


class LockStep:
    """The parts of a training in one thread, one after another: what it does can be repeated."""

    def __init__(self):
        """Begin."""
        self.alone = Alone(400, True, 1.0)
        self.trainer = new_trainer()
        self.feeder = ReplayFeeder([self.alone.ring], self.trainer.replay, 3)

    def turn(self) -> None:
        """Play, move and learn."""
        for _ in range(60):
            self.alone.collector.step()
        while self.feeder.drain():
            pass
        games = self.alone.episodes.items(64)
        columns = [games[name].tolist() for name in ("return", "distance", "frames")]
        self.trainer.ended(zip(*columns, strict=True))
        self.alone.episodes.release(len(columns[0]))
        steps = self.feeder.steps
        while self.trainer.may_learn(steps):
            assert self.trainer.update()
            self.trainer.new_weights(steps)

    def stop_and_resume(self, path: Path) -> None:
        """Save the trainer, and put another in its place that goes on from there."""
        trainer = self.trainer
        checkpoint.write_checkpoint(
            path, IDENTITY, trainer.learner.state(), trainer.replay.arrays(), trainer.progress()
        )
        other = new_trainer()
        progress = checkpoint.resume(path, IDENTITY, other.learner, other.replay)
        other.restore(progress)
        assert digest(other.replay.arrays()) == digest(trainer.replay.arrays())
        steps = self.feeder.steps
        self.trainer, self.feeder = other, ReplayFeeder([self.alone.ring], other.replay, 3)
        self.feeder.steps = steps


def new_trainer() -> Trainer:
    return Trainer(SETTINGS, PixelLearner(HOW, 3, SETTINGS.seed), HOW.stack)


def test_a_training_that_was_stopped_comes_to_the_weights_of_one_that_was_not(tmp_path):
    """In lock step; the collector plays on. The buffer is written over, once around."""
    whole, stopped = LockStep(), LockStep()
    for turn in range(7):
        whole.turn()
        stopped.turn()
        if turn in (1, 4):
            stopped.stop_and_resume(tmp_path / "saved.pt")
    one, other = whole.trainer, stopped.trainer
    assert one.updates == other.updates == int((1260 - 100) * 0.25 / 32)
    assert int(one.replay.count.max()) > one.replay.size
    for name, weights in one.learner.weights().items():
        assert np.array_equal(weights, other.learner.weights()[name]), name
    assert digest(one.replay.arrays()) == digest(other.replay.arrays())
    assert (one.games, list(one.recent), one.best[:2]) == (
        *(other.games, list(other.recent), other.best[:2]),
    )
    assert all(np.array_equal(array, other.best[2][name]) for name, array in one.best[2].items())


def test_updates_are_due_by_the_replay_ratio():
    trainer = new_trainer()
    assert [trainer.may_learn(steps) for steps in (0, 99, 100, 227, 228)] == [*[False] * 4, True]
    assert trainer.limit() == 100 + 520, "4 * 32 / 0.25, in strides of 20"
    assert trainer.frames(10) == 40
    assert trainer.update() is False, "there is nothing in the buffer"
    free = Trainer(replace(SETTINGS, replay_ratio=None), trainer.learner, 4)
    assert free.limit() == 1000 and not free.may_learn(99) and free.may_learn(100)
    assert free.done(1000, learned=True) and not free.done(999, learned=False)
    assert not trainer.done(1000, learned=True) and trainer.done(1000, learned=False)
    assert [round(SETTINGS.epsilon(frames), 3) for frames in (0, 400, 800, 4000)] == [
        *(1.0, 0.525, 0.05, 0.05),
    ]


@given(
    ratio=st.floats(1e-3, 1e5),
    batch=st.integers(1, 3000),
    accumulation=st.integers(1, 16),
    buffer=st.integers(1000, 10**6),
    moved=st.integers(1, 5000),
)
@example(ratio=4097.0, batch=16, accumulation=64, buffer=1000, moved=1)
@example(ratio=0.1, batch=3, accumulation=1, buffer=1000, moved=1)
def test_neither_side_waits_for_ever(ratio, batch, accumulation, buffer, moved):
    """In lock step, with an update that takes no samples: either it is due, or steps may come."""
    settings = replace(
        SETTINGS, buffer=buffer, replay_ratio=ratio, batch=batch, accumulation=accumulation
    )
    with patch("goalreel.training.pixels.trainer.FrameReplay"):
        trainer = Trainer(replace(settings, frames=10**12), None, 4)
    steps = 0
    for _ in range(60):
        while steps < min(trainer.limit(), trainer._due()):
            room = int(trainer.limit() - steps)  # as feeder rounds it
            assert room >= 1
            steps = min(steps + max(moved, room // 4), steps + room)
        assert trainer.may_learn(steps)
        trainer.updates += 1
        assert trainer.samples <= ratio * (steps - settings.start) * (1 + 1e-12)


def test_a_mean_of_few_games_is_none():
    with patch("goalreel.training.pixels.trainer.FrameReplay"):
        trainer = Trainer(SETTINGS, Mock(), 4)
    trainer.ended([(-100.0, 0.0, 400)] * 19)
    assert np.isnan(trainer.mean) and trainer.means() == (-100.0, 0.0)
    trainer.updates = 2
    assert trainer.new_weights(100) and trainer.best is None
    trainer.ended([(-80.0, 0.0, 400)])
    assert trainer.new_weights(100) and trainer.best[0] == trainer.mean == -99.0


def spec(**others) -> str:
    return json.dumps({"stage": "pixels", "config": {"pixels": SECTION | others}})


PROGRAM = f"""
import sys
sys.path.insert(0, {str(REPOSITORY / "scripts")!r})
import pixels
from goalreel import cli
from goalreel.training.pixels import monitor
monitor.EVERY = 0.5
cli.run(pixels.main)
"""


def command(folder: Path, **others) -> list[str]:
    """Return the command line of a training in a folder, whose monitor looks often."""
    files = [str(folder / n) for n in ("policy.npz", "monitor.csv", "metrics.json", "plot.svg")]
    saved = ["--saved", str(folder / "saved.pt")]
    return [sys.executable, "-c", PROGRAM, *files, *saved, "--spec", spec(**others)]


def stopped_by(stop: signal.Signals, folder: Path, at: str) -> int:
    """Start a training in a folder, send it a signal at a line; return the frames that it had."""
    slow = {"replay_ratio": 0.01, "frames": 10**9}  # the learner rests, the car is driven by chance
    with subprocess.Popen(command(folder, **slow), stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if re.search(at, line):
                process.send_signal(stop)
                break
        said = process.stderr.read()
    assert process.returncode == 1 and not (folder / "policy.npz").exists(), said
    told = re.search(rf"stopped by {stop.name} after ([\d,]+) of 1,000,000,000 frames; it is", said)
    return int(told[1].replace(",", ""))


def rows_of(table: Path) -> list[dict[str, float]]:
    """Return the rows of a monitor's table."""
    with table.open(newline="") as stream:
        return [{k: float(v or "nan") for k, v in row.items()} for row in csv.DictReader(stream)]


@pytest.mark.slow
def test_one_that_is_stopped_saves_itself_and_goes_on(tmp_path, capsys, monkeypatch):
    """To a larger number of frames, which is no part of what must stay as it was."""
    monkeypatch.setattr("torch.set_num_threads", lambda count: None)
    first = stopped_by(signal.SIGTERM, tmp_path, r"frames, .* [1-9]\d* batches")
    frames = stopped_by(signal.SIGINT, tmp_path, f"resumed after {first:,} frames")
    assert frames >= first
    identity = saved(tmp_path)["identity"]
    _, replay, progress = checkpoint.read_checkpoint(tmp_path / "saved.pt", identity)
    count, steps = replay["count"], progress["sums"]["steps"]
    assert 4 * steps == frames and steps <= count.sum() <= 1.03 * steps + 3
    sampled = [row["frames"] for row in rows_of(tmp_path / "saved.csv")]
    assert sampled[-1] == frames and len(sampled) == len(progress["rows"]) >= 3

    import pixels

    others = {"batch": 8, "publish_every": 3, "seed": 8, "target_every": 4}
    named = [f"pixels.{name} is {SECTION[name]}, not {value}" for name, value in others.items()]
    with pytest.raises(GoalreelError, match=f"saved.pt: .*{', '.join(named)}; delete it"):
        pixels.main(command(tmp_path, **others)[3:])
    assert (tmp_path / "saved.pt").exists()
    more = frames + 4000
    pixels.main(command(tmp_path, replay_ratio=0.01, frames=more)[3:])
    assert f"saved.pt: resumed after {frames:,} frames" in capsys.readouterr().err
    assert not list(tmp_path.glob("saved.*"))
    told = json.loads((tmp_path / "metrics.json").read_text())["metrics"]
    assert told["sessions"] == 3 and told["frames"] == more == 4 * told["steps"]
    rows = rows_of(tmp_path / "monitor.csv")
    for name in ("seconds", "frames", "batches", "samples", "episodes", "drops"):
        values = [row[name] for row in rows]
        assert values == sorted(values), f"{name} counts on"
    assert rows[-1]["frames"] == more and [r["frames"] for r in rows][: len(sampled)] == sampled
    policy = read_pixel_checkpoints(tmp_path / "policy.npz")
    assert policy.ages[-1] == more and policy.game["game"] == "MountainCar-v0"
    values = policy.actor(policy.choose("last")).values(np.zeros((2, 4, 84, 84), np.uint8))
    assert values.shape == (2, 3) and np.isfinite(values).all()
    assert read_caption(tmp_path / "plot.svg").title == "Training from pixels"


@pytest.mark.slow
def test_any_failure_saves_the_training_and_is_told(tmp_path, capsys, monkeypatch):
    """Of the learner; then, of the one that goes on from there, in the thread beside it."""
    import pixels

    monkeypatch.setattr("torch.set_num_threads", lambda count: None)
    arguments = command(tmp_path, frames=10**9)[3:]
    learn, append = Trainer.update, FrameReplay.append

    def out_of_memory(self):
        if self.updates == 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return learn(self)

    with monkeypatch.context() as bad:
        bad.setattr(Trainer, "update", out_of_memory)
        with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
            pixels.main(arguments)
    said = capsys.readouterr().err
    frames = re.search(r"the training failed after ([\d,]+) of 1,000,000,000 frames; it is", said)
    assert saved(tmp_path)["progress"]["trainer"]["updates"] == 3
    assert len(rows_of(tmp_path / "saved.csv")) >= 1

    def lost(self, rows, first_lane=0):
        if self.count.sum() > 700:
            raise IndexError("no such lane")
        append(self, rows, first_lane)

    with monkeypatch.context() as bad:
        bad.setattr(FrameReplay, "append", lost)
        with pytest.raises(IndexError, match="no such lane"):
            pixels.main(arguments)
    said = capsys.readouterr().err
    assert f"saved.pt: resumed after {frames[1]} frames" in said and "it is saved in" in said
    assert saved(tmp_path)["progress"]["trainer"]["updates"] > 3


def saved(folder: Path) -> dict:
    return torch.load(folder / "saved.pt", weights_only=True)


def sample(**others) -> Sample:
    names = "seconds frames batches samples drops buffer queue loss td_error episodes return_"
    values = dict.fromkeys(f"{names} distance epsilon blocked learning restarts".split(), 0)
    return Sample(**values | {"collectors": 2, "gpu": None} | others)


def test_the_monitor_tells_rates_since_the_look_before(capsys, tmp_path):
    first, table = sample(seconds=10.0, frames=1000, blocked=3.0), tmp_path / "so_far.csv"
    monitor = Monitor(first, 5000, [[0] * len(COLUMNS)], table)
    nan = float("nan")
    monitor.take(
        sample(seconds=14.0, frames=3000, batches=8, blocked=7.0, learning=3.0, return_=nan)
    )
    row = dict(zip(COLUMNS, monitor.rows[-1], strict=True))
    rates = [row[name] for name in ("fps", "batches_per_s", "blocked", "learning")]
    assert rates == [500, 2, 0.5, 0.75]
    said = capsys.readouterr().err
    assert "14 s: 3,000 of 5,000 frames, 500 FPS; 8 batches, 2.00/s" in said
    assert "return -, " in said and "collectors blocked 50%, learner busy 75%" in said
    assert "GPU" not in said and row["return"] is None
    write_rows(tmp_path / "m.csv", monitor.rows)
    assert (tmp_path / "m.csv").read_text().count("\n") == 3
    assert table.read_text() == (tmp_path / "m.csv").read_text()
    monitor.take(sample(seconds=15.0, gpu=40.0))
    assert "GPU 40%" in capsys.readouterr().err


def test_a_plot_is_drawn_of_any_table(tmp_path):
    for rows in ([], [[1] * len(COLUMNS)], [[1] * len(COLUMNS), [None] * len(COLUMNS)]):
        plot_training(tmp_path / "p.svg", rows, "a game", "{}")
        assert "a game" in read_caption(tmp_path / "p.svg").description


def test_a_policys_network_is_the_learners(tmp_path):
    from goalreel.training.pixels.session import Sums
    from goalreel.training.pixels.training import Trained, write_results

    trainer = new_trainer()
    last = trainer.learner.weights()
    best = {name: array + 1 for name, array in last.items()}
    trainer.best = (-120.0, 2000, best)
    trainer.ended([(-150.0, 0.0, 800)] * 30)
    sums = Sums(seconds=2.0, steps=1000)
    trained = Trained({"game": "MountainCar-v0"}, 3, 1, trainer, sums, [], 4000, last)
    files = [tmp_path / name for name in ("p.npz", "m.csv", "m.json")]
    said = write_results(*files, trained, parse_spec('{"config":{},"shard":{},"stage":"pixels"}'))
    assert "4,000 frames in 2.0 s, 2,000 FPS" in said and "best mean return -120.0" in said
    policy = read_pixel_checkpoints(files[0])
    assert (policy.ages, policy.means, policy.actions) == ((2000, 4000), (-120.0, -150.0), 3)
    assert (policy.choose("best"), policy.choose("last"), policy.choose(2000)) == (0, 1, 0)
    for stored, trained_ in zip(policy.weights, (best, last), strict=True):
        assert all(np.array_equal(stored[name], trained_[name]) for name in trained_)
    with pytest.raises(GoalreelError, match="allowed: best, last, 2000, 4000"):
        policy.choose(3000)
    files[0].write_bytes(files[0].read_bytes()[:-9])
    with pytest.raises(GoalreelError, match="truncated or corrupt"):
        read_pixel_checkpoints(files[0])
    assert asdict(trained.sums)["steps"] == json.loads(files[2].read_text())["metrics"]["steps"]
