"""Turn a finished run into a LeRobot dataset, with LeRobot's own writer.

    pip install lerobot goalreel
    python examples/lerobot_dataset.py results/CartPole-v1-random dataset

The second folder must be new. Publish it by `hf upload NAME dataset --repo-type dataset`. A frame
of the dataset is the picture and state before an action, so an episode's last picture is left out.
"""

import sys
from pathlib import Path

import numpy as np
import yaml
from lerobot.datasets.lerobot_dataset import LeRobotDataset

import goalreel

results, folder = map(Path, sys.argv[1:])
options = yaml.safe_load((results / "config.yaml").read_text())
dataset = None
for path in sorted(results.glob("trajectories/*.npz")):
    played = goalreel.read_trajectories(path)
    cache = goalreel.open_cache(results / "frames" / path.name)
    for episode in range(len(played)):
        states, actions, rewards = played.episode(episode)
        steps = len(rewards)
        columns = {
            "observation.state": states[:steps].astype(np.float32),
            "action": actions.reshape(steps, -1),
            "next.reward": rewards.astype(np.float32)[:, None],
            "next.done": np.arange(steps)[:, None] == steps - 1,
        }
        columns = {name: array for name, array in columns.items() if array.shape[1]}
        if dataset is None:
            features = {
                name: {"dtype": str(array.dtype), "shape": array.shape[1:], "names": None}
                for name, array in columns.items()
            }
            names = ["height", "width", "channels"]
            image = {"dtype": "video", "shape": cache[0].shape, "names": names}
            features["observation.image"] = image
            fps = options["film"]["fps"]
            dataset = LeRobotDataset.create("me/film", fps, features, folder)
        for step, frame in enumerate(cache.episode(episode)[:steps]):
            row = {name: array[step] for name, array in columns.items()}
            row |= {"observation.image": cache[frame], "task": options["env"]}
            dataset.add_frame(row)
        dataset.save_episode()
dataset.finalize()
