"""Replay episodes in Gymnasium, to show that tables and frames equal its results."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from goalreel.environments.environment import gymnasiums_environment
from goalreel.errors import GoalreelError, UnusableFileError
from goalreel.files.atomic import replacing
from goalreel.films.scene import open_scene
from goalreel.provenance.embedded_specs import read_spec
from goalreel.provenance.spec import Spec, shard_name
from goalreel.rendering.blocks import pad_black
from goalreel.rendering.frame_cache import open_cache
from goalreel.rendering.frame_recorder import replay_frames
from goalreel.simulation.episodes import Episode
from goalreel.simulation.played_episodes import read_selection
from goalreel.simulation.reaches import simulate_attempts
from goalreel.simulation.trajectories import read_trajectories


def find_episode(results: Path, number: int, attempt: int | None) -> tuple[Mapping, str, Episode]:
    """Return an episode or a reach of a run, after the options that made it and its name.

    The name is such as "reach 17, attempt 0". Raises GoalreelError if the run has none.
    """
    # attempt: at the reach, None for the last. If it was not filmed, it is simulated again.
    run = read_run(results)
    unit, folder, place = run.config["unit"], results / "trajectories", number
    if "selection" in run.input_digests:
        numbers = read_selection(results / "selection.npz").rows.reach.tolist()
        if number not in numbers:
            fix = f"Film it: --config 'film={{select: [{number}]}}'"
            raise GoalreelError(f"{results}: Episode {number} is not in the film. {fix}")
        place = numbers.index(number)
    if place not in range(run.shard["reaches"]):
        last = run.shard["reaches"] - 1
        problem = f"No {unit} {number}. The last one is {last}."
        raise GoalreelError(f"{results}: {problem} episodes.csv has the number of each seed.")
    if unit != "reach" and attempt is not None:
        raise GoalreelError("--attempt: This run films episodes, not reaches. Remove --attempt.")
    shard = shard_name(place // run.shard["size"])
    trajectories = read_trajectories(folder / f"{shard}.npz")
    rows, spec = trajectories.attempts, trajectories.spec
    tried = np.flatnonzero(rows.reach == number)
    if attempt is not None and attempt not in range(len(tried)):
        fix = f"The last is {len(tried) - 1}."
        raise GoalreelError(f"--attempt: No attempt {attempt} at reach {number}. {fix}")
    row = rows.take(tried[[-1 if attempt is None else attempt]])
    (pair,) = row.pairs()
    name = f"{unit} {number}" + (f", attempt {pair[1]}" if unit == "reach" else "")
    if not spec.reproducible:
        raise GoalreelError(
            f"{name}: Not reproducible, because the run has check_determinism=false. "
            f"Film single episodes: snakemake clips"
        )
    if pair not in trajectories.episodes.pairs():
        scene = open_scene(spec.config)
        trajectories = simulate_attempts(row, scene.env, scene.policy, spec)
    steps = trajectories.episode(trajectories.episodes.pairs().index(pair))
    ending = bool(row.terminated[0]), bool(row.truncated[0])
    frames = results / "frames" / f"{shard}.npz"
    drawing = open_cache(frames).spec.config if frames.exists() else {}
    return spec.config | drawing, name, Episode(int(row.seed[0]), *steps, *ending)


def last_run(folder: Path) -> Path:
    """Return the folder of the run with the newest tables: `folder`, or one in it."""
    tables = [*folder.glob("tables.json"), *folder.glob("*/tables.json")]
    return max(tables, key=lambda path: path.stat().st_mtime, default=folder / "tables.json").parent


def read_run(results: Path) -> Spec:
    """Return the spec of a run's tables. Raises GoalreelError if there is none."""
    try:
        return read_spec(results / "tables.json")
    except GoalreelError as error:
        raise GoalreelError(
            f"{results}: No finished run here. Name its folder: --results FOLDER\n  {error}"
        ) from None


def replay(config: Mapping, name: str, episode: Episode) -> list[np.ndarray]:
    """Replay an episode in Gymnasium. Return (H, W, 3) uint8 frames. Raises GoalreelError."""
    actions = episode.actions  # a negative action or a NaN force means none
    if np.isnan(actions).any() or (actions.dtype == np.int8 and (actions < 0).any()):
        problem = "Cannot be replayed, because its recording has no actions."
        raise GoalreelError(f"{name}: {problem}")
    return list(replay_frames(gymnasiums_environment(config), episode))


def save_pngs(folder: Path, frames: list[np.ndarray]) -> None:
    """Write each frame as folder/00000.png, folder/00001.png, ..."""
    from PIL import Image

    for number, frame in enumerate(frames):
        with replacing(folder / f"{number:05d}.png") as temporary:
            Image.fromarray(frame).save(temporary, "PNG")


def difference(trajectories: Path, frames: Path | None) -> tuple[Path, str] | None:
    """Replay each filmed episode of a shard in a new instance, up to the first difference.

    Return the file that differs and the place in it, or None. Without `frames`, compare no frames.
    Call this in a process of its own, because an environment holds Python's lock and may crash.
    Raises GoalreelError if the environment cannot be made.
    """
    made = read_trajectories(trajectories)
    cache = open_cache(frames) if frames else None
    config = made.spec.config | (cache.spec.config if cache else {})
    rows, environment = made.episodes, gymnasiums_environment(config)
    environment.make().close()  # a failure here is not an error of the file
    try:
        for index, seed in enumerate(rows.seed.tolist()):
            ending = bool(rows.terminated[index]), bool(rows.truncated[index])
            episode, first = Episode(seed, *made.episode(index), *ending), int(made.offsets[index])
            for step, picture in enumerate(replay_frames(environment, episode)):
                frame = cache[first + step] if cache else picture
                if not np.array_equal(pad_black(picture, frame.shape), frame):
                    place = f"the episode of seed {seed}, step {step}"
                    return frames, f"{place}: Gymnasium renders a different frame"
    except UnusableFileError as error:
        return error.path, error.problem
    except GoalreelError as error:
        return trajectories, str(error)
    return None
