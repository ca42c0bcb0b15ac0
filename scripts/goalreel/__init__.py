"""Film reinforcement learning policies over thousands of episodes of Gymnasium environments.

Run `snakemake` to make large films (see README.md). In Python, make a small film of a function, a
model or a named policy:

    film = goalreel.film("CartPole-v1", policy, episodes=20, to="film.mp4")

Compare new episodes with the lock file of `snakemake lock`, such as in a test:

    assert goalreel.check("goalreel.lock")

Record videos in your own script. These recorders replace those of the same name in Gymnasium and
Stable-Baselines3 and write files of the same names:

    env = gymnasium.make("CartPole-v1", render_mode="rgb_array")
    env = goalreel.RecordVideo(env, "videos")
    goalreel.vector.RecordVideo, goalreel.sb3.VecVideoRecorder      for vector environments
    goalreel.trackers                                               values for their on_video

Read the results of the workflow:

    cache = goalreel.open_cache("results/frames/00000.npz")
    cache[0]                                        a frame, (height, width, 3) uint8
    cache.episode(3)                                the indices of episode 3's frames
    shard = goalreel.read_trajectories("results/trajectories/00000.npz")
    states, actions, rewards = shard.episode(3)

These functions raise GoalreelError for a wrong argument or file. Other modules are internal and may
change.
"""

import importlib

__version__ = "0.1.0"  # pyproject.toml reads it

# Imported on first use, so that a stage imports only what it needs.
_HOME = {
    "GoalreelError": "errors",
    "RecordVideo": "recorders.record_video",
    "check": "workflow.in_process",
    "film": "workflow.in_process",
    "open_cache": "rendering.frame_cache",
    "read_trajectories": "simulation.trajectories",
}
_MODULES = ("sb3", "trackers", "vector")
__all__ = [*_HOME]


def __dir__() -> list[str]:
    """Return the public names, for completion and help."""
    return [*__all__, "__version__"]


def __getattr__(name: str):
    """Import a public name when it is first used."""
    if name in _HOME:
        return getattr(importlib.import_module(f"goalreel.{_HOME[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"goalreel.{name}")
    raise AttributeError(f"module 'goalreel' has no attribute {name!r}")
