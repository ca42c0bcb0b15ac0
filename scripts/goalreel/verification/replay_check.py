"""Shards that Gymnasium played and drew, played again: every step and every picture is compared.

Each shard in a process of its own, since an environment holds Python's lock and may crash.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from goalreel.environments.environment import gymnasiums_environment
from goalreel.environments.gymnasium_env import GymnasiumEnvironment, Step
from goalreel.errors import GoalreelError, Unusable
from goalreel.pictures.blocks import on_black
from goalreel.pictures.camera import replayed
from goalreel.pictures.frame_cache import open_cache
from goalreel.simulation.episodes import Episode
from goalreel.simulation.trajectories import read_trajectories


def difference(trajectories: Path, frames: Path | None) -> tuple[Path, str] | None:
    """Play each filmed episode of a shard in a new instance, up to the first difference.

    Args:
        trajectories: the shard's trajectory file.
        frames: its frame cache, None where there is none; then no picture is compared.

    Returns:
        The file that is not what Gymnasium gives, and where; None if there is none.

    Raises:
        GoalreelError: the environment cannot be made, or a file cannot be read.

    """
    made = read_trajectories(trajectories)
    rows, environment = made.episodes, gymnasiums_environment(made.spec.config)
    environment.make().close()  # that it cannot be made is no fault of the file
    cache = open_cache(frames) if frames else None
    try:
        for index, seed in enumerate(rows.seed.tolist()):
            over = bool(rows.terminated[index]), bool(rows.truncated[index])
            episode = Episode(seed, *made.episode(index), *over)
            first = int(made.offsets[index])
            for step in _played(trajectories, environment, episode):
                frame = cache[first + step.step] if cache else step.picture
                if not np.array_equal(on_black(step.picture, frame.shape), frame):
                    fault = f"the episode of seed {seed}, step {step.step}: Gymnasium draws another"
                    raise Unusable(frames, f"{fault} picture")
    except Unusable as error:
        return error.path, error.fault
    return None


def _played(path: Path, environment: GymnasiumEnvironment, episode: Episode) -> Iterator[Step]:
    """Yield the steps of an episode; raise Unusable about `path` where they are not its."""
    try:
        yield from replayed(environment, episode)
    except GoalreelError as error:
        raise Unusable(path, str(error)) from None
