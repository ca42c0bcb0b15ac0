"""LeRobot's own reader returns the run from the dataset of examples/lerobot_dataset.py."""

import os
import subprocess

import numpy as np
import pytest
from project import REPOSITORY

import goalreel

PYTHON = REPOSITORY / ".venv-lerobot" / "bin" / "python"
READ = """
import sys
import numpy as np
from lerobot.datasets.lerobot_dataset import LeRobotDataset

data = LeRobotDataset("some/run", root=sys.argv[1], video_backend="pyav")
names = ["observation.image", "action", "next.reward", "next.done", "episode_index", "timestamp"]
names += ["observation.state"] * ("observation.state" in data.features)
rows = [data[number] for number in range(len(data))]
np.savez(sys.argv[2], **{name: np.stack([np.asarray(row[name]) for row in rows]) for name in names})
"""


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON.is_file(), reason="needs LeRobot: make .venv-lerobot/installed")
@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1", "Taxi-v4"])
def test_lerobot_reader_returns_the_recorded_run(env, project, tmp_path):
    config = {"env": env, "episodes": 3, "policy": "random", "shard_size": 2, "results": "results"}
    project.run("-j", "2", config=config | {"max_episode_steps": 25})
    results, dataset = project.folder / "results", tmp_path / "dataset"
    environment = {"HF_HUB_OFFLINE": "1", "HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    environment |= {"PYTHONPATH": str(REPOSITORY / "scripts")}
    example = REPOSITORY / "examples" / "lerobot_dataset.py"
    subprocess.run([PYTHON, example, results, dataset], check=True, env=environment)
    read_to = tmp_path / "read.npz"
    subprocess.run([PYTHON, "-c", READ, dataset, read_to], check=True, env=environment)
    read, first, number = np.load(read_to), 0, 0
    for path in sorted((results / "trajectories").iterdir()):
        played = goalreel.read_trajectories(path)
        cache = goalreel.open_cache(results / "frames" / path.name)
        for index in range(len(played)):
            states, actions, rewards = played.episode(index)
            rows = slice(first, first + len(rewards))
            first = rows.stop
            assert (read["episode_index"][rows] == number).all()
            assert np.array_equal(read["action"][rows].reshape(actions.shape), actions)
            assert np.array_equal(read["next.reward"][rows].reshape(-1), np.float32(rewards))
            assert read["next.done"][rows].reshape(-1).nonzero()[0].tolist() == [len(rewards) - 1]
            if states.shape[1]:
                assert np.array_equal(read["observation.state"][rows], np.float32(states[:-1]))
            shown = read["observation.image"][rows].transpose(0, 2, 3, 1) * 255
            frames = np.stack([cache[frame] for frame in cache.episode(index)[:-1]])
            assert np.abs(shown - frames).mean(axis=(1, 2, 3)).max() < 3
            number += 1
    assert (first, number) == (len(read["action"]), 3)
