"""goalreel: Mountain Car, filmed at scale. The names for use from Python are listed in __all__.

They are looked up when they are first used, so that a stage imports no more than it needs.
"""

import importlib

_HOME = {
    "GoalreelError": "errors",
    "RecordVideo": "recorders.record_video",
    "open_cache": "pictures.frame_cache",
    "read_trajectories": "simulation.trajectories",
    "save_video": "recorders.save_video",
    "simulate_episodes": "simulation.episodes",
}
__all__ = [*_HOME]


def __getattr__(name: str):
    """Return a public name from the module that it lives in."""
    if name in _HOME:
        return getattr(importlib.import_module(f"goalreel.{_HOME[name]}"), name)
    raise AttributeError(f"module 'goalreel' has no attribute {name!r}")
