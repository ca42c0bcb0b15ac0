"""Trackers store the recorded videos and the returns, read back by their own readers."""

import json
import sqlite3

import gymnasium
import pytest

import goalreel

CART = "CartPole-v1"


def record(folder, on_video) -> list:
    """Record three episodes and return their returns."""
    env = gymnasium.make(CART, render_mode="rgb_array")
    env = goalreel.RecordVideo(env, folder, lambda episode: True, on_video=on_video)
    returns = []
    for seed in range(3):
        env.reset(seed=seed)
        ended, total = False, 0.0
        while not ended:
            _, reward, ended, _, _ = env.step(seed % 2)
            total += reward
        returns.append(total)
    env.close()
    return returns


def test_tensorboard_gets_animations_and_returns(tmp_path):
    accumulators = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="takes tensorboard"
    )
    tensorboard = pytest.importorskip("torch.utils.tensorboard", reason="takes PyTorch")
    with tensorboard.SummaryWriter(tmp_path / "events") as writer:
        returns = record(tmp_path / "videos", goalreel.trackers.to_tensorboard(writer))
    events = accumulators.EventAccumulator(str(tmp_path / "events"))
    events.Reload()
    assert [event.value for event in events.Scalars("video/return")] == returns
    images = events.Images("video")
    assert [image.step for image in images] == [0, 1, 2]
    assert all(image.encoded_image_string[:6] == b"GIF89a" for image in images)


def test_mlflow_gets_artifacts_and_metrics(tmp_path):
    mlflow = pytest.importorskip("mlflow", reason="takes mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'runs.db'}")
    mlflow.create_experiment("films", artifact_location=(tmp_path / "artifacts").as_uri())
    mlflow.set_experiment("films")
    with mlflow.start_run() as run:
        returns = record(tmp_path / "videos", goalreel.trackers.to_mlflow)
    client = mlflow.tracking.MlflowClient()
    history = client.get_metric_history(run.info.run_id, "return")
    assert [(metric.step, metric.value) for metric in history] == list(enumerate(returns))
    kept = sorted(path.name for path in (tmp_path / "artifacts").rglob("*.mp4"))
    assert kept == sorted(path.name for path in (tmp_path / "videos").iterdir())


def test_wandb_gets_videos_offline(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb", reason="takes wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    with wandb.init(project="films", dir=str(tmp_path)) as run:
        returns = record(tmp_path / "videos", goalreel.trackers.to_wandb)
        assert run.summary["return"] == returns[-1] and run.summary["episode"] == 2
    kept = {path.read_bytes() for path in tmp_path.glob("wandb/*/files/media/**/*.mp4")}
    assert kept == {path.read_bytes() for path in (tmp_path / "videos").iterdir()}


def test_trackio_gets_videos(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    trackio = pytest.importorskip("trackio", reason="takes trackio")
    trackio.init(project="films", name="run")
    returns = record(tmp_path / "videos", goalreel.trackers.to_trackio)
    trackio.finish()
    [database] = (tmp_path / "trackio").glob("films*.db")
    with sqlite3.connect(database) as connection:
        rows = connection.execute("select metrics from metrics order by step").fetchall()
    assert [json.loads(metrics)["return"] for (metrics,) in rows] == returns
    assert len(list((tmp_path / "trackio").rglob("*.mp4"))) == 3
