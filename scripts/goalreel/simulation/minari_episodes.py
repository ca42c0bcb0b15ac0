"""Episodes of a Minari data set, and whether they replay: every observation, reward and ending."""

from collections.abc import Mapping, Sequence

import numpy as np

from goalreel.environments.environment import SubEnvs
from goalreel.errors import GoalreelError
from goalreel.policies.minari_files import data_folder
from goalreel.simulation.episodes import Episode, FrameRecorder
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
        unknown = [str(n) for n, seed in zip(episodes, seeds, strict=True) if seed is None]
        if unknown:
            raise GoalreelError(
                f"{label}: the seed of episode {', '.join(unknown[:9])} is not known, so that it "
                "cannot be played again; `episodes` chooses how many of the first are filmed, and "
                "minari's filter_episodes those that have one"
            )
        exact = not (storage.jpeg_encoding and _has_pictures(storage.observation_space))
        found = zip(episodes, seeds, storage.get_episodes(episodes), strict=True)
        return [
            _episode(f"{label}, episode {number}", number, seed, one, exact)
            for number, seed, one in found
        ]
    except GoalreelError:
        raise
    except Exception as error:  # whatever minari, h5py or pyarrow raise
        raise GoalreelError(
            f"{label}: minari cannot read it: {type(error).__name__}: {error}"
        ) from error


def _episode(
    label: str, number: int, seed: int, episode: Mapping, is_exact: bool
) -> RecordedEpisode:
    """Return an episode of minari's; is_exact: whether its observations are what they were."""
    rewards = np.asarray(episode["rewards"], np.float64)
    return RecordedEpisode(
        label=label,
        number=number,
        seed=np.uint64(seed),
        actions=np.asarray(episode["actions"]).reshape(len(rewards), -1),
        rewards=rewards,
        observations=episode["observations"] if is_exact else None,
        terminated=bool(episode["terminations"][-1]),
        truncated=bool(episode["truncations"][-1]),
    )


def _has_pictures(space) -> bool:
    """Tell whether a space has what minari keeps as JPEG."""
    from minari.dataset.minari_storage import is_image_space

    parts = getattr(space, "spaces", ())
    parts = parts.values() if isinstance(parts, Mapping) else parts
    return is_image_space(space) or any(map(_has_pictures, parts))


class Comparison:
    """Compares what is played with what was recorded, step by step; a camera behind it films."""

    def __init__(self, recorded: Sequence[RecordedEpisode], camera: FrameRecorder | None):
        """Compare the episodes of a batch; camera: what films them, None for nothing."""
        self._recorded, self._camera = recorded, camera
        self._is_filming, self._step = False, 0

    def begin(self, indices: np.ndarray, seeds: np.ndarray) -> bool:
        """Begin with the reset; all sub-environments are looked at."""
        self._step = 0
        self._is_filming = self._camera is not None and self._camera.begin(indices, seeds)
        return True

    def shoot(self, indices: np.ndarray, batch: SubEnvs) -> None:
        """Compare the observations of a step. Raises GoalreelError where one is another."""
        for index, observation in zip(indices.tolist(), batch.observations(), strict=True):
            recorded = self._recorded[index]
            if recorded.observations is not None and self._step <= len(recorded.rewards):
                expected = _at(recorded.observations, self._step)
                _compare(
                    recorded, f"the observation after step {self._step}", expected, observation
                )
        self._step += 1
        if self._is_filming:
            self._camera.shoot(indices, batch)

    def end(self, index: int, episode: Episode, returned: float) -> None:
        """Compare an episode's rewards and ending. Raises GoalreelError where one is another."""
        recorded = self._recorded[index]
        for step, pair in enumerate(zip(recorded.rewards, episode.rewards, strict=False), 1):
            _compare(recorded, f"the reward of step {step}", *pair)
        if len(episode.rewards) == len(recorded.rewards):
            # An episode that was left before its end is marked as truncated there.
            _compare(recorded, "whether it terminates", recorded.terminated, episode.terminated)
            if episode.truncated:
                _compare(recorded, "whether it is truncated", recorded.truncated, True)
        if self._camera is not None:
            self._camera.end(index, episode, returned)

    def finish(self) -> None:
        """Have the camera write what it filmed."""
        if self._camera is not None:
            self._camera.finish()


def _compare(episode: RecordedEpisode, what: str, recorded: object, played: object) -> None:
    if not _same(recorded, played):
        raise GoalreelError(
            f"{episode.label} (seed {episode.seed}) does not replay: {what} was "
            f"{_short(recorded)}, and is {_short(played)} here; the environment may be of another "
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


def _short(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 120 else f"{text[:117]}..."
