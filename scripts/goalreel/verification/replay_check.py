"""Replay check: Gymnasium plays a shard again, and every step and frame is compared.

Each shard in a process of its own, since an environment holds Python's lock and may crash.
"""

from pathlib import Path

import numpy as np

from goalreel.environments.environment import gymnasiums_environment
from goalreel.errors import GoalreelError, UnusableFileError
from goalreel.rendering.blocks import on_black
from goalreel.rendering.frame_cache import open_cache
from goalreel.rendering.frame_recorder import replayed
from goalreel.simulation.episodes import Episode
from goalreel.simulation.trajectories import read_trajectories


def difference(trajectories: Path, frames: Path | None) -> tuple[Path, str] | None:
    """Play each filmed episode of a shard in a new instance, up to the first difference.

    Args:
        trajectories: the shard's trajectory file.
        frames: its frame cache, None if there is none; then no frame is compared.

    Returns:
        The file that differs from what Gymnasium gives, and where; None if there is none.

    Raises:
        GoalreelError: the environment cannot be made, or a file cannot be read.

    """
    made = read_trajectories(trajectories)
    rows, environment = made.episodes, gymnasiums_environment(made.spec.config)
    environment.make().close()  # a failure here is no error of the file
    cache = open_cache(frames) if frames else None
    try:
        for index, seed in enumerate(rows.seed.tolist()):
            ending = bool(rows.terminated[index]), bool(rows.truncated[index])
            episode, first = Episode(seed, *made.episode(index), *ending), int(made.offsets[index])
            for step in replayed(environment, episode):
                frame = cache[first + step.step] if cache else step.picture
                if not np.array_equal(on_black(step.picture, frame.shape), frame):
                    place = f"the episode of seed {seed}, step {step.step}"
                    return frames, f"{place}: Gymnasium draws another picture"
    except UnusableFileError as error:
        return error.path, error.problem
    except GoalreelError as error:
        return trajectories, str(error)
    return None
