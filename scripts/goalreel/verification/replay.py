"""Replay: an episode of the tables, stepped again by Gymnasium itself.

It proves on the spot that a row of a table and a piece of the film are what Gymnasium gives.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from goalreel.environments.environment import gymnasiums_environment
from goalreel.errors import GoalreelError
from goalreel.files.atomic import replacing
from goalreel.films.scene import open_scene
from goalreel.films.shards import shard_name
from goalreel.films.tables import ATTEMPT_COLUMNS, EPISODE_COLUMNS
from goalreel.pictures.blocks import on_black
from goalreel.pictures.camera import replayed
from goalreel.provenance.embedded_specs import read_spec
from goalreel.simulation.episodes import Episode, simulate_episodes
from goalreel.simulation.recording_file import UNKNOWN_SEED
from goalreel.simulation.trajectories import Trajectories, read_trajectories


@dataclass(frozen=True)
class Recorded:
    """An episode as goalreel recorded it."""

    config: Mapping  # of its trajectories: env, env_kwargs, env_wrappers, max_steps, policy
    name: str  # such as "reach 17, attempt 0" or "episode 17"
    episode: Episode


def find_episode(results: Path, number: int, attempt: int | None) -> Recorded:
    """Return an episode of a run.

    Args:
        results: the run's folder.
        number: the episode's, or that of the reach, as the run's tables count.
        attempt: of a reach; None for its last.

    An attempt that was not filmed is simulated again from its seed. Raises GoalreelError if the
    run has no such episode.
    """
    _, unit = read_run(results)
    table = results / ("attempts.csv" if unit == "reach" else "episodes.csv")
    try:
        rows = pd.read_csv(table, low_memory=False)[
            ATTEMPT_COLUMNS if unit == "reach" else EPISODE_COLUMNS[unit]
        ]
        rows = rows[rows[unit] == number]
    except FileNotFoundError:
        raise GoalreelError(f"{table}: no such file; run snakemake to make it") from None
    except (ValueError, KeyError) as error:
        raise GoalreelError(f"{table}: not a table of episodes ({error}); delete it") from None
    if rows.empty:
        raise GoalreelError(f"{table}: no {unit} {number}")
    name = f"{unit} {number}"
    if unit == "reach":
        attempt = int(rows["attempt"].max()) if attempt is None else attempt
        rows, name = rows[rows["attempt"] == attempt], f"{name}, attempt {attempt}"
    elif attempt is not None:
        raise GoalreelError(f"{table}: episodes have no attempts; leave --attempt out")
    if rows.empty:
        raise GoalreelError(f"{table}: reach {number} has no attempt {attempt}")
    row = rows.iloc[0]
    shard = shard_name(int(row["shard"]))
    trajectories = read_trajectories(results / "trajectories" / f"{shard}.npz")
    if not trajectories.spec.reproducible:
        raise GoalreelError(
            f"{name}: not reproducible, since check=false plays nothing again. "
            f"Film single episodes: snakemake clips"
        )
    config, ending = trajectories.spec.config, (bool(row["terminated"]), bool(row["truncated"]))
    episode = Episode(int(row["seed"]), *_steps(trajectories, config, row, name), *ending)
    return Recorded(config, name, episode)


def last_run(folder: Path) -> Path:
    """Return the folder of the run whose tables are the newest: `folder`, or one in it."""
    tables = [*folder.glob("tables.json"), *folder.glob("*/tables.json")]
    return max(tables, key=lambda path: path.stat().st_mtime, default=folder / "tables.json").parent


def read_run(results: Path) -> tuple[int, str]:
    """Return the run's frames per second, and what it counts: "reach" or "episode".

    Raises GoalreelError if its tables do not tell.
    """
    path = results / "tables.json"
    try:
        config = read_spec(path).config
        return int(config["film.fps"]), config["unit"]
    except (GoalreelError, ValueError, TypeError) as error:
        raise GoalreelError(
            f"{path}: cannot be used ({error}); name the run's folder with --results"
        ) from None


def replay(recorded: Recorded) -> list[np.ndarray]:
    """Step Gymnasium through a recorded episode and return its frames, (H, W, 3) uint8 each.

    Raises GoalreelError at the first state or reward that is not bit for bit the recorded one,
    and if the episode ends elsewhere or otherwise.
    """
    config, episode = recorded.config, recorded.episode
    if episode.seed == UNKNOWN_SEED or _unknown(episode.actions):
        raise GoalreelError(
            f"{recorded.name} was recorded as states: there are no actions to replay"
        )
    return [step.picture for step in replayed(gymnasiums_environment(config), episode)]


def save_pngs(folder: Path, frames: list[np.ndarray]) -> None:
    """Write each frame as folder/00000.png, folder/00001.png, ..."""
    from PIL import Image

    for number, frame in enumerate(frames):
        with replacing(folder / f"{number:05d}.png") as temporary:
            Image.fromarray(frame).save(temporary, "PNG")


def save_gif(path: Path, frames: list[np.ndarray], fps: int) -> None:
    """Write the frames as a GIF, which keeps time in hundredths of a second."""
    from PIL import Image

    size = np.max([frame.shape for frame in frames], axis=0)
    first, *others = [Image.fromarray(on_black(frame, size)) for frame in frames]
    with replacing(path) as temporary:
        duration = max(round(100 / fps), 2) * 10
        first.save(temporary, "GIF", save_all=True, append_images=others, duration=duration, loop=0)


def _unknown(actions: np.ndarray) -> bool:
    """Tell whether an episode's actions stand for none (recorded.NO_ACTION)."""
    return bool(np.isnan(actions).any() if actions.dtype.kind == "f" else (actions < 0).any())


def _steps(trajectories: Trajectories, config: Mapping, row: pd.Series, name: str):
    filmed = trajectories.episodes
    number, attempt = row.get("reach", row.get("episode")), row.get("attempt", 0)
    (place,) = np.nonzero((filmed.reach == number) & (filmed.attempt == attempt))
    if len(place):
        return trajectories.episode(int(place[0]))

    scene = open_scene(config)
    again = simulate_episodes(np.array([row["seed"]]), scene.env, scene.policy)
    steps = int(again.steps[0])
    if (steps, again.returns[0]) != (row["steps"], row["return"]):
        raise GoalreelError(
            f"{name} was not filmed, and its policy now takes {steps} steps from seed "
            f"{row['seed']}, not {row['steps']}"
        )
    return again.states[0, : steps + 1], again.actions[0, :steps], again.rewards[0, :steps]
