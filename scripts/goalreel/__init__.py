"""goalreel films what a reinforcement learning policy does, over thousands of episodes.

The films are made by a Snakemake workflow (`snakemake -j 16`, see README.md). From Python, make a
small one, of a function, a model or a policy's name,

    table = goalreel.film("CartPole-v1", policy, episodes=20, to="film.mp4")

record a video in a script of your own, with Gymnasium's names and file names:

    env = gymnasium.make("CartPole-v1", render_mode="rgb_array")
    env = goalreel.RecordVideo(env, "videos")       in place of gymnasium.wrappers.RecordVideo
    goalreel.save_video(frames, "videos", fps=30)   in place of Gymnasium's save_video
    goalreel.vector.RecordVideo, goalreel.sb3.VecVideoRecorder      of vector environments

and read what the workflow has made:

    cache = goalreel.open_cache("results/frames/00000.npz")
    cache[0]                                        a frame, (height, width, 3) uint8
    cache.episode(3)                                the numbers of episode 3's frames
    shard = goalreel.read_trajectories("results/trajectories/00000.npz")
    states, actions, rewards = shard.episode(3)

A wrong argument or file is a GoalreelError. The modules that help lists are the workflow's own, and
may change.
"""

import importlib

__version__ = "0.1.0"  # pyproject.toml reads it

# Looked up when they are first used, so that a stage imports no more than it needs.
_HOME = {
    "GoalreelError": "errors",
    "RecordVideo": "recorders.record_video",
    "film": "workflow.in_process",
    "open_cache": "rendering.frame_cache",
    "read_trajectories": "simulation.trajectories",
    "save_video": "recorders.save_video",
}
_MODULES = ("hub", "sb3", "vector")  # of model cards, of further recorders
__all__ = [*_HOME]


def __dir__() -> list[str]:
    """Return what completion and help offer."""
    return [*__all__, "__version__"]


def __getattr__(name: str):
    """Return a public name from the module that it lives in."""
    if name in _HOME:
        return getattr(importlib.import_module(f"goalreel.{_HOME[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"goalreel.{name}")
    raise AttributeError(f"module 'goalreel' has no attribute {name!r}")
