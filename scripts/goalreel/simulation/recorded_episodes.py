"""Replay recorded episodes: reach i is episode i of the recording, reached or not.

The environment replays recorded actions from their seeds. Episodes of a Minari dataset are also
compared with their recorded observations, rewards and endings. If a recording stops before its
episode ends, the film shows the part that exists, and the episode is neither terminated nor
truncated. If it continues after the end, it is an error. Recorded states, which only the Mountain
Cars support, are shown unchanged.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from textwrap import shorten
from typing import NamedTuple

import numpy as np

from goalreel.environments.environment import Acted, Environment, PerEnv, parts_of, take_rows
from goalreel.environments.registry import MAX_POSITION, MIN_POSITION, describe
from goalreel.errors import GoalreelError
from goalreel.policies.minari_files import data_folder
from goalreel.provenance.spec import Spec
from goalreel.simulation.episodes import Episode, EpisodeRecorder, simulate_episodes
from goalreel.simulation.reaches import assemble, to_batch
from goalreel.simulation.recording_file import RecordedEpisode
from goalreel.simulation.trajectories import Trajectories

NO_ACTION = -1  # stored with recorded states, whose actions are unknown; NaN if continuous
_BATCH_ROWS = 1 << 16  # rows that a batch may take whatever its episodes' lengths


def read_minari(dataset: str, episodes: range) -> list[RecordedEpisode]:
    """Return a range of a Minari dataset's episodes, with the values that a replay must match.

    Raises GoalreelError if the dataset cannot be read or does not know an episode's seed.
    """
    import minari

    folder, label = data_folder(dataset), f"policy.dataset: '{dataset}'"
    try:
        from minari.dataset.minari_storage import is_image_space

        storage = minari.MinariDataset(folder).storage
        seeds = [metadata.get("seed") for metadata in storage.get_episode_metadata(episodes)]
        has_images = any(map(is_image_space, parts_of(storage.observation_space)))
        is_exact = not (storage.jpeg_encoding and has_images)  # Minari stores these as JPEG
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


def play_recording(
    recorded: Sequence[RecordedEpisode],
    environment: Environment,
    spec: Spec,
    success: str | float | None,
    recorder: EpisodeRecorder | None = None,
) -> Trajectories:
    """Return the trajectories of recorded episodes. Raises GoalreelError if one has no replay."""
    batches = []
    for group in _batches(recorded):
        seeds = np.array([episode.seed for episode in group])
        reaches = np.array([episode.number for episode in group])
        if group[0].states is not None:
            episodes = [_to_episode(episode, environment) for episode in group]
        else:
            episodes = _replay(group, seeds, environment, recorder)
        batches.append(to_batch(reaches, 0, seeds, episodes, environment, success))
    return assemble(batches, spec, recorder)


def _batches(recorded: Sequence[RecordedEpisode]) -> Iterator[Sequence[RecordedEpisode]]:
    """Yield consecutive episodes to play in parallel, in batches that limit memory."""
    # A batch allocates the longest episode's rows for every episode, so this may be at most four
    # times the rows that its episodes have.
    first = rows = longest = 0
    for number, episode in enumerate(recorded):
        length = len(episode.actions if episode.states is None else episode.states)
        rows, longest = rows + length, max(longest, length)
        if longest * (number + 1 - first) > max(4 * rows, _BATCH_ROWS):
            yield recorded[first:number]
            first, rows, longest = number, length, length
    yield recorded[first:]


def _to_stored(episode: RecordedEpisode, environment: Environment) -> np.ndarray:
    """Return an episode's actions in the form that the trajectory file stores."""
    rows, space = episode.actions, environment.actions
    if rows.shape[1] != len(space.low):
        raise GoalreelError(
            f"{episode.label}: Its actions have {rows.shape[1]} numbers, but {environment.id} "
            f"takes {space}. Set env to the recorded environment."
        )
    if space.is_integer and rows.dtype.kind == "f" and (rows == np.floor(rows)).all():
        rows = rows.astype(np.int64)
    source = f"{episode.label}: The recording"
    return space.validate(rows.reshape(len(rows), *space.shape), len(rows), source)


class _Script(NamedTuple):
    """A policy that plays the recorded actions of each sub-environment's episode."""

    actions: Sequence[np.ndarray]

    def generators(self, seeds: np.ndarray) -> PerEnv:
        # A sub-environment may be stepped after its episode's end; the last action repeats there.
        return PerEnv(itertools.chain(rows, itertools.repeat(rows[-1])) for rows in self.actions)

    def act(self, observations, environment, generators: PerEnv) -> Acted:
        return np.array([next(actions) for actions in generators]), generators, {}


def _replay(
    recorded: Sequence[RecordedEpisode],
    seeds: np.ndarray,
    environment: Environment,
    recorder: EpisodeRecorder | None,
) -> list[Episode]:
    """Return the episodes that recorded actions give when played from their seeds."""
    actions = [_to_stored(episode, environment) for episode in recorded]
    lengths = np.array([len(rows) for rows in actions])
    has_observations = recorded[0].observations is not None
    watch = partial(_compare_observations, recorded) if has_observations else None
    episodes = simulate_episodes(seeds, environment, _Script(actions), lengths, recorder, watch)
    _compare_outcomes(recorded, episodes)
    for expected, length, episode in zip(recorded, lengths, episodes, strict=True):
        if len(episode.actions) < length:
            raise GoalreelError(
                f"{expected.label}: It has {length} actions, but its episode ends "
                f"after {len(episode.actions)} steps. Set env, env_kwargs and max_episode_steps as "
                "recorded."
            )
    return episodes


def _compare_observations(
    recorded: Sequence[RecordedEpisode], indices: np.ndarray, step: int, observations: Sequence
) -> None:
    """Raise GoalreelError if a running episode's observation after a step is not as recorded."""
    for index, observation in zip(indices.tolist(), observations, strict=True):
        episode = recorded[index]
        if step <= len(episode.rewards):
            expected = take_rows(episode.observations, step)
            _compare(episode, f"the observation after step {step}", expected, observation)


def _compare_outcomes(recorded: Sequence[RecordedEpisode], episodes: Sequence[Episode]) -> None:
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


def _is_equal(recorded: object, played: object) -> bool:
    """Return whether two observations or rewards are equal; NaN equals NaN."""
    if isinstance(recorded, Mapping):
        return all(_is_equal(part, played[key]) for key, part in recorded.items())
    if isinstance(recorded, tuple):
        return all(map(_is_equal, recorded, played))
    recorded, played = np.asarray(recorded), np.asarray(played)
    are_floats = recorded.dtype.kind == "f" and played.dtype.kind == "f"
    return np.array_equal(recorded, played, equal_nan=are_floats)


def _to_episode(recorded: RecordedEpisode, environment: Environment) -> Episode:
    """Return recorded states as an episode with unknown actions."""
    if not describe(environment.id).is_mountain_car:
        raise GoalreelError(
            f"{recorded.label}: Only the Mountain Cars can be filmed from positions and "
            f"velocities. For {environment.id}, record seeds and actions instead."
        )
    states, steps = recorded.states[:, :2], len(recorded.states) - 1
    # MountainCarContinuous-v0 keeps float32 states, whose limits are slightly wider.
    low, high = np.float32([MIN_POSITION, MAX_POSITION]).astype(np.float64)
    on_track = (states[:, 0] >= low) & (states[:, 0] <= high) & np.isfinite(states[:, 1])
    wrong = np.flatnonzero(~on_track)[:1].tolist()
    if wrong or steps == 0:
        state = f"State {wrong[0]} is {states[wrong[0]].tolist()}" if wrong else "It has one state"
        raise GoalreelError(
            f"{recorded.label}: {state}. Record two or more states, with positions from "
            f"{MIN_POSITION} to {MAX_POSITION}."
        )
    # Every step of MountainCar-v0 costs 1. In the continuous one the cost depends on the action.
    action, reward = (np.nan, np.nan) if environment.continuous else (NO_ACTION, -1.0)
    has_rewards = recorded.states.shape[1] == 3
    position, velocity = states[-1]
    goal = position >= environment.goal_position and velocity >= environment.goal_velocity
    actions = np.full(steps, action, environment.actions.stored_dtype)
    rewards = recorded.states[1:, 2] if has_rewards else np.full(steps, reward)
    truncated = steps >= environment.max_episode_steps
    return Episode(int(recorded.seed), states, actions, rewards, bool(goal), truncated)
