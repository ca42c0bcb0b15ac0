"""Replay recorded episodes: reach i is episode i of the recording, reached or not.

The environment replays recorded actions from their seeds. Episodes of a Minari dataset are also
compared with their recorded observations, rewards and endings. If a recording stops before its
episode ends, the film shows the part that exists, and the episode is neither terminated nor
truncated. If it continues after the end, it is an error. Recorded states, which only the Mountain
Cars support, are shown unchanged.
"""

import itertools
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from goalreel.environments.environment import Environment, PerEnv
from goalreel.environments.registry import MAX_POSITION, MIN_POSITION, describe
from goalreel.errors import GoalreelError
from goalreel.provenance.spec import Spec
from goalreel.simulation.episodes import Episode, EpisodeRecorder, simulate_episodes
from goalreel.simulation.minari_episodes import compare_observations, compare_outcomes
from goalreel.simulation.reaches import assemble, to_batch
from goalreel.simulation.recording_file import RecordedEpisode
from goalreel.simulation.trajectories import Trajectories

NO_ACTION = -1  # stored with recorded states, whose actions are unknown; NaN if continuous
_BATCH_ROWS = 1 << 16  # rows that a batch may take whatever its episodes' lengths


def play_recording(
    recorded: Sequence[RecordedEpisode],
    environment: Environment,
    spec: Spec,
    success: str | float | None,
    recorder: EpisodeRecorder | None = None,
) -> Trajectories:
    """Return the trajectories of a shard of recorded episodes, all of which are filmed.

    Raises GoalreelError if an episode cannot be replayed.
    """
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
    """Yield consecutive episodes to play in parallel, in batches that limit memory.

    A batch allocates the longest episode's rows for every episode, so this may be at most four
    times the rows that its episodes have.
    """
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

    def act(self, observations, environment, generators: PerEnv) -> tuple[np.ndarray, PerEnv]:
        return np.array([next(actions) for actions in generators]), generators


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
    watch = partial(compare_observations, recorded) if has_observations else None
    episodes = simulate_episodes(seeds, environment, _Script(actions), lengths, recorder, watch)
    compare_outcomes(recorded, episodes)
    for expected, length, episode in zip(recorded, lengths, episodes, strict=True):
        if len(episode.actions) < length:
            raise GoalreelError(
                f"{expected.label}: It has {length} actions, but its episode ends "
                f"after {len(episode.actions)} steps. Set env, env_kwargs and max_episode_steps as "
                "recorded."
            )
    return episodes


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
    return Episode(
        seed=int(recorded.seed),
        states=states,
        actions=np.full(steps, action, environment.actions.stored_dtype),
        rewards=recorded.states[1:, 2] if has_rewards else np.full(steps, reward),
        terminated=bool(goal),
        truncated=steps >= environment.max_episode_steps,
    )
