"""Cached frames equal `env.render()` for each kind of environment that people film."""

import importlib.util
import json
import os
import resource
import subprocess
import sys

import numpy as np
import pytest
from conftest import QP
from frames import film
from gymnasium_frames import played
from project import REPOSITORY

from goalreel.environments.environment import make_environment
from goalreel.mp4.reader import read_index
from goalreel.simulation.trajectories import read_trajectories

# The package of the environment, "" for Gymnasium itself, and whether the test is slow.
ENVS = {
    "FrozenLake-v1": ("", False),
    "CartPole-v1": ("", False),
    "HalfCheetah-v5": ("mujoco", True),
    "LunarLander-v3": ("Box2D", False),
    "BipedalWalker-v3": ("Box2D", True),
    "CarRacing-v3": ("Box2D", True),
    "ALE/Breakout-v5": ("ale_py", True),
    "MiniGrid-DoorKey-8x8-v0": ("minigrid", False),
}


@pytest.mark.parametrize(
    "env",
    [
        pytest.param(
            env,
            marks=[
                pytest.mark.skipif(
                    bool(package) and importlib.util.find_spec(package) is None,
                    reason=f"needs {package}: envs/locks/test.txt has it",
                ),
                *([pytest.mark.slow] if slow else []),
            ],
        )
        for env, (package, slow) in ENVS.items()
    ],
)
def test_cached_frames_equal_those_of_a_new_instance(env, tmp_path):
    """The last episodes may run in reused instances."""
    # MuJoCo renders slowly without a graphics card.
    episodes, steps = (2, 8) if env == "HalfCheetah-v5" else (6, 30)
    environment = make_environment({"env": env, "max_episode_steps": steps})
    made, cache = film(tmp_path / "f.npz", environment, range(episodes))
    frames = iter(cache)
    for e in range(episodes):
        seed, actions = int(made.episodes.seed[e]), made.episode(e)[1]
        expected = played(env, seed, actions, max_episode_steps=steps)
        for step, picture in enumerate(expected):
            assert np.array_equal(picture, next(frames)), (e, step)
    assert next(frames, None) is None
    size = (tmp_path / "f.npz").stat().st_size
    assert size < 0.3 / episodes * len(cache) * cache.background.nbytes


def limited(program: str, memory: int, arguments: list, spec: dict) -> str:
    """Run a stage's program with limited address space, and return its output."""
    command = [sys.executable, REPOSITORY / "scripts" / program, *arguments]
    completed = subprocess.run(
        [*command, "--spec", json.dumps(spec)],
        capture_output=True,
        text=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},  # each thread reserves address space
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory)),
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space are Linux's")
@pytest.mark.parametrize(("episodes", "memory"), [(20, 800 << 20), (1000, 1 << 30)])
def test_memory_does_not_grow_with_the_frames(episodes, memory, tmp_path):
    """Whole frames of 20 episodes take 1.4 GB, and 1,000 episodes have about 100,000 frames.

    ffmpeg reserves 0.6 GB.
    """
    pytest.importorskip("Box2D", reason="envs/locks/test.txt has it")
    env, files = "LunarLander-v3", [tmp_path / name for name in ("t.npz", "f.npz", "s.mp4")]
    config = {"env": env, "seed": 1, "film.show_failures": False, "success": -1e9}
    config["policy"] = {"name": "random"}
    spec = {"stage": "simulate", "config": config, "shard": {"first": 0, "count": episodes}}
    limited("simulate.py", memory, ["--trajectories", files[0], "--frames", files[1]], spec)
    config = {"env": env, "unit": "reach", "film.fps": 30, "film_encoder": QP, "render.scale": None}
    config |= {"overlay.caption": "{seed}", "overlay.hud": True, "overlay.signals": False}
    config["title_card"] = {"policy": "random", "count": episodes, "frames": 1}
    inputs = ["--frames", files[1], "--trajectories", files[0], "--output", files[2]]
    limited("encode.py", memory, inputs, {"stage": "encode", "config": config})
    frames = int(read_trajectories(files[0]).offsets[-1])
    assert frames > 60 * episodes
    assert read_index(files[2]).frames == frames + episodes
    assert files[1].stat().st_size < 2000 * frames
