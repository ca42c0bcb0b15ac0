"""What the views of a whole run share: the run's shards, one at a time, and their way into video.

A view shows all episodes that reached the goal at the same time. What it draws stands with each:
swarm, phase.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from goalreel.encoding.x264 import encode_video
from goalreel.encoding.yuv import planar
from goalreel.environments.registry import MOUNTAIN_CARS, describe
from goalreel.errors import GoalreelError
from goalreel.provenance.spec import common_spec
from goalreel.simulation.trajectories import Trajectories, read_trajectories


def run_shards(paths: Iterable[Path], env: str) -> Iterator[Trajectories]:
    """Yield the trajectories of all shards, in order; only one is in memory at a time.

    Raises GoalreelError if a file cannot be used, is of another environment, or was made
    otherwise than the first.
    """
    goal_position(env)
    first = None
    for path in paths:
        trajectories = read_trajectories(path)
        first = first or {path: trajectories.spec}
        common_spec(first | {path: trajectories.spec})
        check_mountain_car(trajectories, env)
        yield trajectories


def goal_position(env: str, columns: int = 2) -> float:
    """Return where a Mountain Car's goal is.

    Raises GoalreelError for another environment, or if its states have not two `columns`.
    """
    goal = describe(env).goal_position
    if goal is None or columns != 2:
        raise GoalreelError(
            f"this view needs Mountain Car ({', '.join(MOUNTAIN_CARS)}), whose state is a position "
            f"and a velocity; {env}{'' if columns == 2 else f' with states of {columns}'} is none"
        )
    return goal


def check_mountain_car(trajectories: Trajectories, env: str) -> None:
    """Raise GoalreelError unless the trajectories are of the Mountain Car `env`."""
    made = env_of(trajectories.spec) or env
    goal_position(made, trajectories.states.shape[1])
    if made != env:
        raise GoalreelError(f"the trajectories are of {made}, not of {env}; delete them")


def env_of(spec: str) -> str | None:
    """Return the environment that a file's spec names, None if it names none."""
    return json.loads(spec).get("config", {}).get("env")


def write_view(
    path: str | os.PathLike,
    frames: Iterable[np.ndarray],
    size: tuple[int, int],
    fps: int,
    encode: Mapping,
    comment: str,
) -> int:
    """Encode frames, (H, W, 3) uint8, to `path`, the last one held for a second; return how many.

    size: (width, height). encode, comment: see video.encode_video. Raises GoalreelError as it does,
    and if the width or height is odd.
    """
    width, height = size
    if width % 2 or height % 2:
        raise GoalreelError(f"yuv420p needs an even width and height, not {width}x{height}")
    return encode_video(path, _held(map(planar, frames), fps), size, fps, encode, comment)


def _held(frames: Iterable[np.ndarray], more: int) -> Iterator[np.ndarray]:
    """Yield the frames, and the last one `more` times again."""
    last = None
    for last in frames:
        yield last
    for _ in range(more if last is not None else 0):
        yield last
