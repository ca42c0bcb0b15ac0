"""Read the episodes of a Minari dataset, and check that they replay exactly.

The check compares every observation, reward and ending.
"""

from collections.abc import Mapping, Sequence
from textwrap import shorten

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.policies.minari_files import data_folder
from goalreel.simulation.episodes import Episode
from goalreel.simulation.recording_file import RecordedEpisode


def read_episodes(dataset: str, episodes: range) -> list[RecordedEpisode]:
    """Return a range of a dataset's episodes, with the values that a replay must match.

    Raises GoalreelError if the dataset cannot be read or does not know an episode's seed.
    """
    import minari

    folder, label = data_folder(dataset), f"policy.dataset: '{dataset}'"
    try:
        storage = minari.MinariDataset(folder).storage
        seeds = [metadata.get("seed") for metadata in storage.get_episode_metadata(episodes)]
        is_exact = not (storage.jpeg_encoding and _has_images(storage.observation_space))
        loaded = list(storage.get_episodes(episodes))
    except Exception as error:  # Minari, h5py and pyarrow raise many kinds
        raise GoalreelError(
            f"{label}: Minari cannot read the dataset. Download it again.\n"
            f"  {type(error).__name__}: {error}"
        ) from error
    unknown = [str(n) for n, seed in zip(episodes, seeds, strict=True) if seed is None]
    if unknown:
        raise GoalreelError(
            f"{label}: Cannot replay episodes without a known seed: {', '.join(unknown[:5])}. "
            "Lower episodes, or select others with Minari's filter_episodes."
        )
    return [
        RecordedEpisode(
            label=f"{label}, episode {number}",
            number=number,
            seed=np.uint64(seed),
            actions=np.asarray(data["actions"]).reshape(len(data["rewards"]), -1),
            rewards=np.asarray(data["rewards"], np.float64),
            observations=data["observations"] if is_exact else None,
            terminated=bool(data["terminations"][-1]),
            truncated=bool(data["truncations"][-1]),
        )
        for number, seed, data in zip(episodes, seeds, loaded, strict=True)
    ]


def _has_images(space) -> bool:
    """Return whether a space contains images, which Minari may store as JPEG."""
    from minari.dataset.minari_storage import is_image_space

    parts = getattr(space, "spaces", ())
    parts = parts.values() if isinstance(parts, Mapping) else parts
    return is_image_space(space) or any(map(_has_images, parts))


def compare_observations(
    recorded: Sequence[RecordedEpisode], indices: np.ndarray, step: int, observations: Sequence
) -> None:
    """Check the observations of the running episodes, `indices`, after a step.

    Raises GoalreelError if one differs from the recording.
    """
    for index, observation in zip(indices.tolist(), observations, strict=True):
        episode = recorded[index]
        if step <= len(episode.rewards):
            expected = _observation_at(episode.observations, step)
            _compare(episode, f"the observation after step {step}", expected, observation)


def compare_outcomes(recorded: Sequence[RecordedEpisode], episodes: Sequence[Episode]) -> None:
    """Check rewards and endings against the recording. Raises GoalreelError if one differs."""
    for expected, played in zip(recorded, episodes, strict=True):
        if expected.terminated is None:  # a file of actions has no endings
            continue
        for step, pair in enumerate(zip(expected.rewards, played.rewards, strict=False), 1):
            _compare(expected, f"the reward of step {step}", *pair)
        if len(played.rewards) == len(expected.rewards):
            # Minari marks an episode as truncated when its recording stopped before the end.
            _compare(expected, "terminated", expected.terminated, played.terminated)
            if played.truncated:
                _compare(expected, "truncated", expected.truncated, True)


def _compare(episode: RecordedEpisode, name: str, recorded: object, played: object) -> None:
    """Raise GoalreelError if a recorded and a replayed value differ."""
    if not _is_equal(recorded, played):
        was, now = (shorten(str(value), 120) for value in (recorded, played))
        raise GoalreelError(
            f"{episode.label}: Its replay differs at {name}. Install the recorded versions, or "
            f"film only the episodes before: episodes={episode.number}\n"
            f"  recorded: {was}\n  replayed: {now}\n  seed: {episode.seed}"
        )


def _observation_at(observations: object, step: int) -> object:
    """Return the observation of one step of an episode."""
    if isinstance(observations, Mapping):
        return {key: _observation_at(part, step) for key, part in observations.items()}
    if isinstance(observations, tuple):
        return tuple(_observation_at(part, step) for part in observations)
    return observations[step]


def _is_equal(recorded: object, played: object) -> bool:
    """Return whether two observations or rewards are equal; NaN equals NaN."""
    if isinstance(recorded, Mapping):
        return all(_is_equal(part, played[key]) for key, part in recorded.items())
    if isinstance(recorded, tuple):
        return all(map(_is_equal, recorded, played))
    recorded, played = np.asarray(recorded), np.asarray(played)
    are_floats = recorded.dtype.kind == "f" and played.dtype.kind == "f"
    return np.array_equal(recorded, played, equal_nan=are_floats)
