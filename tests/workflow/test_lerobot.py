"""LeRobot's own reader returns the run from the dataset, frame by frame."""

import importlib.util
import json
import subprocess

import av
import numpy as np
import pandas as pd
import pytest
import yaml
from project import REPOSITORY

import goalreel

READER = REPOSITORY / ".venv-lerobot" / "bin" / "python"
CONFIG = {"env": "CartPole-v1", "episodes": 7, "policy": "{name: random}", "shard_size": 3}
PENDULUM = CONFIG | {"env": "Pendulum-v1", "max_episode_steps": 25}
REACHES = {"reaches": 3, "shard_size": 2}
IMAGE = "observation.image"


RUNS = [CONFIG, pytest.param(PENDULUM, marks=pytest.mark.slow), REACHES]


@pytest.fixture(scope="module", params=RUNS, ids=["cart", "pendulum", "car"])
def made(request, tmp_path_factory, user_cache):
    """Return the folders of a dataset of several files, and of its run."""
    pytest.importorskip("pyarrow", reason="takes pyarrow, which is no requirement")
    from project import Project

    folder = tmp_path_factory.mktemp("lerobot") / "project"
    folder.mkdir()
    project = Project(folder, user_cache)
    project.edit("scripts/goalreel/report/lerobot.py", "_FRAMES = 20_000", "_FRAMES = 60")
    project.run("-j", "2", "lerobot", config=request.param)
    return folder / "results" / "lerobot", folder / "results"


def recorded(results):
    """Yield each episode's frames, states, actions and rewards from the run."""
    for path in sorted((results / "trajectories").iterdir()):
        played = goalreel.read_trajectories(path)
        cache = goalreel.open_cache(results / "frames" / path.name)
        for index in range(len(played)):
            frames = cache.episode(index)
            yield [cache[frame] for frame in frames[:-1]], *played.episode(index), played, index


def read(folder, template, row, key):
    """Return the path of the file that a row of meta/episodes names."""
    numbers = {"chunk_index": row[f"{key}/chunk_index"], "file_index": row[f"{key}/file_index"]}
    return folder / template.format(video_key=IMAGE, **numbers)


def test_lerobot_dataset_fields_equal_the_run(made):
    """The format is version 3.0. Each video frame is decoded at its own time."""
    folder, results = made
    info = json.loads((folder / "meta/info.json").read_text())
    episodes = pd.read_parquet(folder / "meta/episodes")
    everything = list(recorded(results))
    assert info["codebase_version"] == "v3.0" and info["total_episodes"] == len(everything)
    assert info["total_frames"] == sum(len(rewards) for _, _, _, rewards, *_ in everything)
    assert info["splits"] == {"train": f"0:{len(everything)}"}
    tasks = pd.read_parquet(folder / "meta/tasks.parquet")
    assert tasks["task_index"].tolist() == [0]
    kinds = {"float32": np.float32, "int64": np.int64, "bool": np.bool_}
    counts_reaches = yaml.safe_load((results / "config.yaml").read_text())["reaches"] is not None
    first, decoded = 0, {}
    for number, (pictures, states, actions, rewards, played, index) in enumerate(everything):
        row = episodes.iloc[number]
        assert (row["episode_index"], row["length"]) == (number, len(rewards))
        assert (row["dataset_from_index"], row["dataset_to_index"]) == (first, first + len(rewards))
        assert row["tasks"].tolist() == tasks.index.tolist()
        assert row["seed"] == played.episodes.seed[index]
        data = pd.read_parquet(read(folder, info["data_path"], row, "data"))
        data = data[data["episode_index"] == number]
        for name, feature in info["features"].items():
            if name != IMAGE:
                column = np.stack(data[name].to_numpy()).reshape(len(data), -1)
                assert column.dtype == kinds[feature["dtype"]]
                assert [column.shape[1]] == feature["shape"]
        steps = np.arange(len(rewards))
        assert data["index"].tolist() == (first + steps).tolist()
        assert data["frame_index"].tolist() == steps.tolist()
        assert np.array_equal(data["timestamp"], np.float32(steps / info["fps"]))
        state = np.stack(data["observation.state"].to_numpy())
        assert np.array_equal(state, np.float32(states[:-1]))
        assert np.array_equal(data["action"].to_numpy(), actions.reshape(-1))
        assert np.array_equal(data["next.reward"], np.float32(rewards))
        assert data["next.done"].tolist() == [False] * (len(rewards) - 1) + [True]
        assert ("next.success" in data) == counts_reaches
        if counts_reaches:
            assert data["next.success"].tolist() == data["next.done"].tolist()
        first += len(rewards)

        place = f"videos/{IMAGE}"
        path = read(folder, info["video_path"], row, place)
        if path not in decoded:
            with av.open(str(path)) as container:
                stream = container.streams.video[0]
                decoded = {
                    path: [(f.time, f.to_ndarray(format="rgb24")) for f in container.decode(stream)]
                }
                assert stream.codec_context.name == info["features"][IMAGE]["info"]["video.codec"]
        start = row[f"{place}/from_timestamp"]
        assert row[f"{place}/to_timestamp"] == pytest.approx(start + len(rewards) / info["fps"])
        frames = decoded[path][round(start * info["fps"]) :][: len(pictures)]
        for step, (picture, (time, shown)) in enumerate(zip(pictures, frames, strict=True)):
            assert abs(time - start - step / info["fps"]) < 1e-4  # LeRobot's tolerance
            assert shown.shape == picture.shape == tuple(info["features"][IMAGE]["shape"])
            near = pictures[max(step - 1, 0) : step + 2]
            around = [np.abs(shown.astype(int) - other).mean() for other in near]
            assert around[min(step, 1)] <= min(min(around) + 0.01, 2)
    assert len({row["data/file_index"] for _, row in episodes.iterrows()}) > 1 or len(episodes) < 4


def test_statistics_equal_those_of_the_columns(made):
    folder, results = made
    stats = json.loads((folder / "meta/stats.json").read_text())
    everything = list(recorded(results))
    states = np.concatenate([np.float32(states[:-1]) for _, states, *_ in everything])
    for name, value in (("mean", states.mean(0)), ("std", states.std(0)), ("min", states.min(0))):
        assert np.allclose(stats["observation.state"][name], value, atol=1e-5)
    assert stats["next.reward"]["count"] == [len(states)]
    sampled = np.concatenate([np.stack(pictures[::16]) for pictures, *_ in everything]) / 255
    for name, value in (("mean", sampled.mean((0, 1, 2))), ("std", sampled.std((0, 1, 2)))):
        assert np.allclose(np.ravel(stats[IMAGE][name]), value, atol=1e-9)
        assert np.shape(stats[IMAGE][name]) == (3, 1, 1)
    assert np.allclose(np.ravel(stats[IMAGE]["max"]), sampled.max((0, 1, 2)))


READ = """
import sys
import numpy as np
from lerobot.datasets.lerobot_dataset import LeRobotDataset

data = LeRobotDataset("some/run", root=sys.argv[1], video_backend="pyav")
rows = [data[number] for number in range(len(data))]
np.savez(sys.argv[2], **{
    name: np.stack([np.asarray(row[name]) for row in rows])
    for name in ("observation.image", "observation.state", "action", "next.reward", "next.done",
                 "episode_index")
})
some = LeRobotDataset("some/run", root=sys.argv[1], video_backend="pyav", episodes=[0, 2],
    delta_timestamps={"observation.image": [-1 / data.fps, 0]})
assert some[0]["observation.image"].shape[0] == 2 and len(some) == sum(
    data.meta.episodes[number]["length"] for number in (0, 2))
"""


@pytest.mark.slow
@pytest.mark.skipif(not READER.is_file(), reason="needs LeRobot: make .venv-lerobot/installed")
def test_lerobot_reader_returns_the_recorded_run(made, tmp_path):
    folder, results = made
    command = [READER, "-c", READ, folder, tmp_path / "read.npz"]
    subprocess.run(command, check=True, env={"HF_HUB_OFFLINE": "1", "HOME": str(tmp_path)})
    read = np.load(tmp_path / "read.npz")
    first = 0
    for number, (pictures, states, actions, rewards, *_) in enumerate(recorded(results)):
        rows = slice(first, first + len(rewards))
        first = rows.stop
        assert (read["episode_index"][rows] == number).all()
        assert np.array_equal(read["observation.state"][rows], np.float32(states[:-1]))
        assert np.array_equal(read["action"][rows].reshape(-1), actions.reshape(-1))
        assert np.array_equal(read["next.reward"][rows].reshape(-1), np.float32(rewards))
        shown = read["observation.image"][rows].transpose(0, 2, 3, 1) * 255
        assert np.abs(shown - np.stack(pictures)).mean(axis=(1, 2, 3)).max() < 2
    assert first == len(read["action"])


@pytest.mark.parametrize(("name", "jobs"), [("lerobot.py", {"lerobot": 1}), ("model_card.py", {})])
def test_dataset_reruns_after_an_edit_of_its_code(sources, name, jobs):
    pytest.importorskip("pyarrow", reason="takes pyarrow, which is no requirement")
    edit = f"goalreel/report/{name}"
    assert sources.reruns({"reaches": 4}, edit, ("lerobot",)) == jobs


@pytest.mark.skipif(bool(importlib.util.find_spec("pyarrow")), reason="pyarrow is installed")
def test_missing_pyarrow_names_the_installation(project):
    told = project.fail("-j", "2", "lerobot", config=CONFIG | {"episodes": 1})
    assert "needs the package pyarrow" in told and "pip install pyarrow" in told
    project.run("-n", config=CONFIG)
