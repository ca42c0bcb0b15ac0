"""Recorded episodes, played as they are: reach i is the file's episode i, reached or not.

Actions are played from their seeds by the environment itself; those of a Minari data set are
compared with what it has of every step. A recording that stops before its
episode ends is shown up to there, neither terminated nor truncated; one that goes on after it is
refused. States, of the Mountain Cars alone, are shown as they are.
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

NO_ACTION = -1  # in MountainCarContinuous-v0 NaN: what states were recorded without
_BATCH_ROWS = 1 << 16  # that may be played side by side whatever their lengths


def play_recording(
    recorded: Sequence[RecordedEpisode],
    environment: Environment,
    spec: Spec,
    success: str | float | None,
    recorder: EpisodeRecorder | None = None,
) -> Trajectories:
    """Return the trajectories of a shard of recorded episodes, all of them for the film.

    Raises GoalreelError for an episode that cannot be played.
    """
    batches = []
    for some in _batches(recorded):
        seeds, reaches = np.array([one.seed for one in some]), [one.number for one in some]
        if some[0].states is not None:
            episodes = [_shown(one, environment) for one in some]
        else:
            episodes = _played(some, seeds, environment, recorder)
        batches.append(to_batch(np.array(reaches), 0, seeds, episodes, environment, success))
    return assemble(batches, spec, recorder)


def _batches(recorded: Sequence[RecordedEpisode]) -> Iterator[Sequence[RecordedEpisode]]:
    """Yield neighbours that are played side by side, so that memory follows the file's rows.

    A batch takes the rows of its longest episode for each: as many as four times its own.
    """
    first = rows = longest = 0
    for number, one in enumerate(recorded):
        length = len(one.actions if one.states is None else one.states)
        rows, longest = rows + length, max(longest, length)
        if longest * (number + 1 - first) > max(4 * rows, _BATCH_ROWS):
            yield recorded[first:number]
            first, rows, longest = number, length, length
    yield recorded[first:]


def _actions(one: RecordedEpisode, environment: Environment) -> np.ndarray:
    """Return an episode's actions as the trajectory file holds them."""
    rows, space = one.actions, environment.actions
    if rows.shape[1] != len(space.low):
        raise GoalreelError(
            f"{one.label}: an action is {rows.shape[1]} numbers; {environment.id} takes {space}"
        )
    if space.whole and rows.dtype.kind == "f" and (rows == np.floor(rows)).all():
        rows = rows.astype(np.int64)
    return space.checked(rows.reshape(len(rows), *space.shape), len(rows), f"{one.label}:")


class _Script(NamedTuple):
    """A policy that plays recorded actions, each sub-environment its own."""

    parts: Sequence[np.ndarray]

    def generators(self, seeds: np.ndarray) -> PerEnv:
        # A sub-environment may be stepped after its end, which is ignored.
        return PerEnv(itertools.chain(part, itertools.repeat(part[-1])) for part in self.parts)

    def act(self, observations, environment, generators: PerEnv) -> tuple[np.ndarray, PerEnv]:
        return np.array([next(actions) for actions in generators]), generators


def _played(
    recorded: Sequence[RecordedEpisode],
    seeds: np.ndarray,
    environment: Environment,
    recorder: EpisodeRecorder | None,
) -> list[Episode]:
    """Return recorded actions as the environment plays them from their seeds."""
    parts = [_actions(one, environment) for one in recorded]
    lengths = np.array([len(part) for part in parts])
    has_seen = recorded[0].observations is not None
    watch = partial(compare_observations, recorded) if has_seen else None
    episodes = simulate_episodes(seeds, environment, _Script(parts), lengths, recorder, watch)
    compare_outcomes(recorded, episodes)
    for one, actions, episode in zip(recorded, parts, episodes, strict=True):
        if len(episode.actions) < len(actions):
            raise GoalreelError(
                f"{one.label}: it has {len(actions)} actions, and the environment ends the episode "
                f"of seed {one.seed} after {len(episode.actions)} steps; was it recorded with "
                f"another env, env_kwargs, max_episode_steps or seed?"
            )
    return episodes


def _shown(one: RecordedEpisode, environment: Environment) -> Episode:
    """Return recorded states as an episode; its actions are not known."""
    if not describe(environment.id).is_mountain_car:
        raise GoalreelError(
            f"{one.label}: it holds positions and velocities, which are Mountain Car's; episodes "
            f"of {environment.id} are recorded by their seeds and actions"
        )
    states, steps = one.states[:, :2], len(one.states) - 1
    # As float32, in which MountainCarContinuous-v0 keeps them, the limits lie further out.
    low, high = np.float32([MIN_POSITION, MAX_POSITION]).astype(np.float64)
    on_track = (states[:, 0] >= low) & (states[:, 0] <= high) & np.isfinite(states[:, 1])
    wrong = np.flatnonzero(~on_track)[:1].tolist()
    if wrong or steps == 0:
        what = f"state {wrong[0]} is {states[wrong[0]].tolist()}" if wrong else "one state"
        raise GoalreelError(
            f"{one.label}: {what}; allowed: two states or more, positions from {MIN_POSITION} "
            f"to {MAX_POSITION}"
        )
    # Every step of MountainCar-v0 costs 1; a force is not known, nor then what it cost.
    action, reward = (np.nan, np.nan) if environment.continuous else (NO_ACTION, -1.0)
    has_rewards = one.states.shape[1] == 3
    position, velocity = states[-1]
    goal = position >= environment.goal_position and velocity >= environment.goal_velocity
    return Episode(
        seed=int(one.seed),
        states=states,
        actions=np.full(steps, action, environment.actions.stored_dtype),
        rewards=one.states[1:, 2] if has_rewards else np.full(steps, reward),
        terminated=bool(goal),
        truncated=steps >= environment.max_episode_steps,
    )
