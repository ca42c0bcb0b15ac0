"""The target pixels in the workflow: its results and its reruns."""

import csv
import importlib.util
import json
from pathlib import Path

import pytest

from goalreel.policies.network_file import PixelCheckpoints, read_checkpoints

TORCH = importlib.util.find_spec("torch") is not None
NEEDS_TORCH = pytest.mark.skipif(not TORCH, reason="takes PyTorch, which is no requirement")
OPTIONS = {"collectors": 1, "n_envs": 2, "total_timesteps": 1000, "buffer_size": 1000}
OPTIONS |= {"train_freq": 128, "learning_starts": 100, "n_eval_episodes": 2, "eval_freq": 500}
OPTIONS |= {"frame_skip": 40, "checkpoints": "[0]"}


def config(**others) -> dict[str, str]:
    told = ", ".join(f"{name}: {value}" for name, value in (OPTIONS | others).items())
    return {"reaches": 4, "shard_size": 2, "pixels": f"{{{told}}}"}


def checkpoint_steps_of(results: Path) -> tuple[int, ...]:
    return read_checkpoints(results / "pixels" / "policy.npz", PixelCheckpoints).checkpoint_steps


@pytest.fixture(scope="module")
def learned(once):
    """Return a project with a finished training."""
    return once("learned", lambda fresh: fresh.run("pixels", "-j", "2", config=config()))


@pytest.mark.slow
@NEEDS_TORCH
def test_pixels_writes_policy_table_metrics_and_plot(learned):
    results = learned.folder / "results"
    names = ["metrics.json", "monitor.csv", "policy.npz", "training.svg"]
    assert sorted(path.name for path in (results / "pixels").iterdir()) == names
    told = json.loads((results / "pixels" / "metrics.json").read_text())
    assert told["stage"] == "pixels" and told["config"]["pixels"]["n_envs"] == 2
    metrics = told["metrics"]
    assert metrics["decisions"] == 1000 and metrics["games"] >= 4
    assert metrics["updates"] == int((1000 - 100) * 0.25 / 32)
    assert [len(one["returns"]) for one in metrics["evaluations"]] == [2, 2, 2]
    assert metrics["best"] in checkpoint_steps_of(results)
    with (results / "pixels" / "monitor.csv").open(newline="") as stream:
        last = list(csv.DictReader(stream))[-1]
    assert int(last["decisions"]) == 1000 and int(last["samples"]) == metrics["samples"]
    said = (results / "logs" / "pixels.log").read_text()
    assert "1,000 of 1,000 decisions" in said
    assert "  pixels  results/pixels/policy.npz" in learned.output


@pytest.mark.slow
@NEEDS_TORCH
def test_later_run_films_trained_network(learned, tmp_path):
    project = learned.copied(tmp_path / "project")
    assert not (project.folder / "results" / "config.yaml").exists(), "they are of no film yet"
    film = config() | {"policy": "{name: pixels, checkpoint: last}", "reaches": "null"}
    film |= {"episodes": 2, "shard_size": 1}
    jobs = project.jobs(config=film)
    assert jobs["simulate"] == 2 and "pixels" not in jobs
    project.run("-j", "2", "results/trajectories/00001.npz", config=film)
    assert project.jobs("results/trajectories/00001.npz", config=film) == {}
    again = film | {"pixels": config(seed=8)["pixels"]}
    jobs = project.jobs("results/trajectories/00001.npz", config=again)
    assert jobs == {"pixels": 1, "simulate": 1}


@pytest.mark.slow
@NEEDS_TORCH
def test_training_progress_films_kept_checkpoints(learned, tmp_path):
    project = learned.copied(tmp_path / "project")
    given = config() | {"policy": "{name: pixels}", "train": "{attempts: 1}"}
    assert "pixels" not in project.jobs("training_progress", config=given)
    project.run("training_progress", "-j", "2", config=given)
    results = project.folder / "results"
    checkpoint_steps = checkpoint_steps_of(results)
    with (results / "training_progress.csv").open(newline="") as stream:
        filmed = [int(row["checkpoint_step"]) for row in csv.DictReader(stream)]
    assert filmed[0] == checkpoint_steps[0] == 0 and set(filmed) <= set(checkpoint_steps)


def test_other_films_plan_no_training(project):
    """The plan does not need PyTorch, with any options."""
    assert "pixels" not in project.jobs(config=config(game="ALE/Pong-v5"))
