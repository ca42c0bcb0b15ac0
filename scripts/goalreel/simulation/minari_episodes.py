"""Episodes of a Minari data set, and whether they replay: every observation, reward and ending."""

from collections.abc import Mapping, Sequence

import numpy as np

from goalreel.environments.environment import Lanes
from goalreel.errors import GoalreelError
from goalreel.policies.minari_files import data_folder
from goalreel.simulation.episodes import Camera, Episode
from goalreel.simulation.recording_file import RecordedEpisode, Recording


def read_episodes(dataset: str, episodes: range) -> Recording:
    """Return some of a data set's episodes, with what they are compared with.

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
        recorded = [_episode(one, exact) for one in storage.get_episodes(episodes)]
    except GoalreelError:
        raise
    except Exception as error:  # whatever minari, h5py or pyarrow raise
        raise GoalreelError(
            f"{label}: minari cannot read it: {type(error).__name__}: {error}"
        ) from error
    lengths = [len(one.rewards) for one in recorded]
    return Recording(
        label=label,
        offsets=np.cumsum([0, *lengths]),
        seeds=np.array(seeds, np.uint64),
        actions=np.concatenate([one.actions for one in recorded]),
        states=None,
        rewards=None,
        first=episodes.start,
        recorded=recorded,
    )


def _episode(episode: Mapping, exact: bool) -> RecordedEpisode:
    """Return an episode of minari's; exact: whether its observations are what they were."""
    rewards = np.asarray(episode["rewards"], np.float64)
    return RecordedEpisode(
        np.asarray(episode["actions"]).reshape(len(rewards), -1),
        rewards,
        episode["observations"] if exact else None,
        bool(episode["terminations"][-1]),
        bool(episode["truncations"][-1]),
    )


def _has_pictures(space) -> bool:
    """Tell whether a space has what minari keeps as JPEG."""
    from minari.dataset.minari_storage import is_image_space

    parts = getattr(space, "spaces", ())
    parts = parts.values() if isinstance(parts, Mapping) else parts
    return is_image_space(space) or any(map(_has_pictures, parts))


class Comparison:
    """Compares what is played with what was recorded, step by step; a camera behind it films."""

    def __init__(
        self, label: str, recorded: Sequence[RecordedEpisode], first: int, camera: Camera | None
    ):
        """Compare the episodes of a batch.

        Args:
            label: of the data set, for messages.
            recorded: the batch's episodes.
            first: the number of the first of them.
            camera: what films them, None for nothing.
        """
        self._label, self._recorded, self._first = label, recorded, first
        self._camera, self._filming, self._seeds, self._step = camera, False, {}, 0

    def begin(self, lanes: np.ndarray, seeds: np.ndarray) -> bool:
        """Take note of the lanes; all of them are looked at."""
        self._seeds, self._step = dict(zip(lanes.tolist(), seeds.tolist(), strict=True)), 0
        self._filming = self._camera is not None and self._camera.begin(lanes, seeds)
        return True

    def shoot(self, lanes: np.ndarray, batch: Lanes) -> None:
        """Compare the observations of a step. Raises GoalreelError where one is another."""
        for lane, observation in zip(lanes.tolist(), batch.observations(), strict=True):
            expected = self._recorded[lane].observations
            if expected is not None and self._step <= len(self._recorded[lane].rewards):
                expected = _at(expected, self._step)
                if not _same(expected, observation):
                    what = f"the observation after step {self._step}"
                    raise self._differs(lane, what, expected, observation)
        self._step += 1
        if self._filming:
            self._camera.shoot(lanes, batch)

    def end(self, lane: int, episode: Episode, returned: float) -> None:
        """Compare an episode's rewards and ending. Raises GoalreelError where one is another."""
        recorded = self._recorded[lane]
        for step in range(len(episode.rewards)):
            pair = recorded.rewards[step], episode.rewards[step]
            if not _same(*pair):
                raise self._differs(lane, f"the reward of step {step + 1}", *pair)
        if len(episode.rewards) == len(recorded.rewards):
            # An episode that was left before its end is marked as truncated there.
            if recorded.terminated != episode.terminated:
                ends = recorded.terminated, episode.terminated
                raise self._differs(lane, "whether it terminates", *ends)
            if episode.truncated and not recorded.truncated:
                raise self._differs(lane, "whether it is truncated", False, True)
        if self._camera is not None:
            self._camera.end(lane, episode, returned)

    def finish(self) -> None:
        """Have the camera write what it filmed."""
        if self._camera is not None:
            self._camera.finish()

    def arrange(self, place: np.ndarray) -> None:
        """Hand on the film's order."""
        if self._camera is not None:
            self._camera.arrange(place)

    def _differs(self, lane: int, what: str, recorded: object, played: object) -> GoalreelError:
        return GoalreelError(
            f"{self._label}, episode {self._first + lane} (seed {self._seeds[lane]}) does not "
            f"replay: {what} was {_short(recorded)}, and is {_short(played)} here; the environment "
            "may be of another version than the one that was recorded, or not depend on its seed "
            f"alone. `episodes: {self._first + lane}` films those before it"
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
