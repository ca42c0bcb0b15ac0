"""Episodes of a Minari data set, and whether they replay: every observation, reward and ending."""

from collections.abc import Mapping, Sequence
from textwrap import shorten

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.policies.minari_files import data_folder
from goalreel.simulation.episodes import Episode
from goalreel.simulation.recording_file import RecordedEpisode


def read_episodes(dataset: str, episodes: range) -> list[RecordedEpisode]:
    """Return some of a dataset's episodes, with what they are compared with.

    Raises GoalreelError if it cannot be read, and for an episode whose seed is not known.
    """
    import minari

    folder, label = data_folder(dataset), f"policy.dataset: {dataset}"
    try:
        storage = minari.MinariDataset(folder).storage
        seeds = [one.get("seed") for one in storage.get_episode_metadata(episodes)]
        exact = not (storage.jpeg_encoding and _has_pictures(storage.observation_space))
        found = list(storage.get_episodes(episodes))
    except Exception as error:  # whatever minari, h5py or pyarrow raise
        raise GoalreelError(
            f"{label}: minari cannot read it: {type(error).__name__}: {error}"
        ) from error
    unknown = [str(n) for n, seed in zip(episodes, seeds, strict=True) if seed is None]
    if unknown:
        raise GoalreelError(
            f"{label}: the seed of episode {', '.join(unknown[:9])} is not known, so that it "
            "cannot be played again; `episodes` chooses how many of the first are filmed, and "
            "minari's filter_episodes those that have one"
        )
    return [
        RecordedEpisode(
            label=f"{label}, episode {number}",
            number=number,
            seed=np.uint64(seed),
            actions=np.asarray(one["actions"]).reshape(len(one["rewards"]), -1),
            rewards=np.asarray(one["rewards"], np.float64),
            observations=one["observations"] if exact else None,
            terminated=bool(one["terminations"][-1]),
            truncated=bool(one["truncations"][-1]),
        )
        for number, seed, one in zip(episodes, seeds, found, strict=True)
    ]


def _has_pictures(space) -> bool:
    """Tell whether a space has what minari keeps as JPEG."""
    from minari.dataset.minari_storage import is_image_space

    parts = getattr(space, "spaces", ())
    parts = parts.values() if isinstance(parts, Mapping) else parts
    return is_image_space(space) or any(map(_has_pictures, parts))


def compare_observations(
    recorded: Sequence[RecordedEpisode], indices: np.ndarray, step: int, observations: Sequence
) -> None:
    """Compare what is seen after a step with what was recorded.

    Args:
        recorded: the episodes of a batch.
        indices: (num_envs,) those that go on.
        step: how many steps were taken.
        observations: what each of them shows.

    Raises:
        GoalreelError: one shows another.
    """
    for index, observation in zip(indices.tolist(), observations, strict=True):
        one = recorded[index]
        if step <= len(one.rewards):
            what = f"the observation after step {step}"
            _compare(one, what, _at(one.observations, step), observation)


def compare_outcomes(recorded: Sequence[RecordedEpisode], episodes: Sequence[Episode]) -> None:
    """Compare rewards and endings. Raises GoalreelError where one is another."""
    for one, played in zip(recorded, episodes, strict=True):
        if one.terminated is None:  # of a file of actions alone
            continue
        for step, pair in enumerate(zip(one.rewards, played.rewards, strict=False), 1):
            _compare(one, f"the reward of step {step}", *pair)
        if len(played.rewards) == len(one.rewards):
            # An episode that was left before its end is marked as truncated there.
            _compare(one, "whether it terminates", one.terminated, played.terminated)
            if played.truncated:
                _compare(one, "whether it is truncated", one.truncated, True)


def _compare(episode: RecordedEpisode, what: str, recorded: object, played: object) -> None:
    if not _same(recorded, played):
        was, now = (shorten(str(value), 120) for value in (recorded, played))
        raise GoalreelError(
            f"{episode.label} (seed {episode.seed}) does not replay: {what} was {was}, "
            f"and is {now} here; the environment may be of another "
            "version than the one that was recorded, or not depend on its seed alone. "
            f"`episodes: {episode.number}` films those before it"
        )


def _at(observations: object, step: int) -> object:
    """Return one observation of those of an episode."""
    if isinstance(observations, Mapping):
        return {key: _at(part, step) for key, part in observations.items()}
    if isinstance(observations, tuple):
        return tuple(_at(part, step) for part in observations)
    return observations[step]


def _same(recorded: object, played: object) -> bool:
    """Tell whether two observations, or rewards, are the same numbers, or the same text."""
    if isinstance(recorded, Mapping):
        return all(_same(part, played[key]) for key, part in recorded.items())
    if isinstance(recorded, tuple):
        return all(map(_same, recorded, played))
    recorded, played = np.asarray(recorded), np.asarray(played)
    inexact = recorded.dtype.kind == "f" and played.dtype.kind == "f"
    return np.array_equal(recorded, played, equal_nan=inexact)
