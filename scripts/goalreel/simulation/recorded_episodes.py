"""Recorded episodes, played as they are: reach i is the file's episode i, reached or not.

Actions are played from their seeds by the environment itself; those of a Minari data set are
compared with what it has of every step. A recording that stops before its
episode ends is shown up to there, neither terminated nor truncated; one that goes on after it is
refused. States, of the Mountain Cars alone, are shown as they are.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from goalreel.environments.environment import Environment
from goalreel.environments.registry import MAX_POSITION, MIN_POSITION, describe
from goalreel.errors import GoalreelError
from goalreel.provenance.spec import Spec
from goalreel.simulation.episodes import Camera, Episodes, simulate_episodes
from goalreel.simulation.minari_episodes import Comparison
from goalreel.simulation.reaches import assemble, concatenate, outcomes, valid
from goalreel.simulation.recording_file import Recording
from goalreel.simulation.trajectories import Trajectories

NO_ACTION = -1  # in MountainCarContinuous-v0 NaN: what states were recorded without
_FEW = 1 << 16  # rows of a batch of any lengths


def play_recording(
    recording: Recording,
    reaches: range,
    environment: Environment,
    spec: Spec,
    success: str | float | None,
    camera: Camera | None = None,
) -> Trajectories:
    """Return the trajectories of a shard of recorded episodes, all of them for the film.

    Raises GoalreelError for an episode that cannot be played.
    """
    rows, kept = [], []
    for some in _batches(recording.lengths(reaches), reaches):
        if recording.states is not None:
            episodes = _shown(recording, some, environment)
        else:
            episodes = _played(recording, some, environment, camera)
        rows.append(outcomes(np.array(some), 0, episodes, environment, success))
        kept.append(valid(episodes, np.ones(len(some), bool)))
    arrays = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    attempts = concatenate(rows)
    return assemble(*arrays, np.arange(len(reaches)), attempts, attempts, spec)


def _batches(lengths: np.ndarray, reaches: range) -> Iterator[range]:
    """Yield neighbours that are played side by side, so that memory follows the file's rows.

    A batch takes the rows of its longest episode for each: as many as four times its own.
    """
    first = rows = longest = 0
    for number, length in enumerate(lengths.tolist()):
        rows, longest = rows + length, max(longest, length)
        if longest * (number + 1 - first) > max(4 * rows, _FEW):
            yield reaches[first:number]
            first, rows, longest = number, length, length
    yield reaches[first:]


def _actions(recording: Recording, episode: int, environment: Environment) -> np.ndarray:
    """Return an episode's actions as the trajectory file holds them."""
    rows, space = recording.actions[recording.rows(episode)], environment.actions
    who = f"{recording.label}, episode {episode}:"
    if rows.shape[1] != len(space.low):
        raise GoalreelError(
            f"{who} an action is {rows.shape[1]} numbers; {environment.id} takes {space}"
        )
    if space.whole and rows.dtype.kind == "f" and (rows == np.floor(rows)).all():
        rows = rows.astype(np.int64)
    return space.checked(rows.reshape(len(rows), *space.shape), len(rows), who)


@dataclass(frozen=True)
class _Cursor:
    """Each lane's recorded episode, and the step that all are at."""

    lanes: np.ndarray
    step: int

    def take(self, lanes: np.ndarray) -> "_Cursor":
        return _Cursor(self.lanes[lanes], self.step)


@dataclass(frozen=True)
class _Script:
    """A policy that plays (episodes, steps) actions, each lane its own."""

    actions: np.ndarray

    def generators(self, seeds: np.ndarray) -> _Cursor:
        return _Cursor(np.arange(len(seeds)), 0)

    def act(self, observations, environment, cursor: _Cursor) -> tuple[np.ndarray, _Cursor]:
        return self.actions[cursor.lanes, cursor.step], _Cursor(cursor.lanes, cursor.step + 1)


def _played(
    recording: Recording, reaches: range, environment: Environment, camera: Camera | None
) -> Episodes:
    """Return recorded actions as the environment plays them from their seeds."""
    parts = [_actions(recording, episode, environment) for episode in reaches]
    lengths = np.array([len(part) for part in parts])
    script = np.zeros((len(parts), lengths.max(), *parts[0].shape[1:]), parts[0].dtype)
    for row, part in enumerate(parts):
        script[row, : len(part)] = part
    seeds = recording.seeds[recording.part(reaches)]
    if recording.recorded:
        expected = recording.recorded[recording.part(reaches)]
        camera = Comparison(recording.label, expected, reaches.start, camera)
    episodes = simulate_episodes(seeds, environment, _Script(script), lengths, camera)
    for row in np.flatnonzero(episodes.steps < lengths)[:1].tolist():
        raise GoalreelError(
            f"{recording.label}, episode {reaches[row]}: it has {lengths[row]} "
            f"actions, and the environment ends the episode of seed {seeds[row]} after "
            f"{episodes.steps[row]} steps; was it recorded with another env, env_kwargs, "
            f"max_steps or seed?"
        )
    return episodes


def _shown(recording: Recording, reaches: range, environment: Environment) -> Episodes:
    """Return recorded states as episodes; their actions are not known."""
    if not describe(environment.id).is_mountain_car:
        raise GoalreelError(
            f"{recording.label} holds positions and velocities, which are Mountain "
            f"Car's; episodes of {environment.id} are recorded by their seeds and actions"
        )
    parts = [recording.rows(episode) for episode in reaches]
    steps = np.array([part.stop - part.start - 1 for part in parts])
    longest = int(steps.max())
    states = np.zeros((len(parts), longest + 1, 2))
    # Every step of MountainCar-v0 costs 1; a force is not known, nor then what it cost.
    rewards = np.full((len(parts), longest), np.nan if environment.continuous else -1.0)
    for row, part in enumerate(parts):
        given = recording.states[part]
        # As float32, in which MountainCarContinuous-v0 keeps them, the limits lie further out.
        low, high = np.float32([MIN_POSITION, MAX_POSITION]).astype(np.float64)
        on_track = (given[:, 0] >= low) & (given[:, 0] <= high)
        wrong = np.flatnonzero(~(on_track & np.isfinite(given[:, 1])))
        if len(wrong) or len(given) < 2:
            place = f"{recording.label}, episode {reaches[row]}:"
            what = f"state {wrong[0]} is {given[wrong[0]].tolist()}" if len(wrong) else "one state"
            raise GoalreelError(
                f"{place} {what}; allowed: two states or more, positions from {MIN_POSITION} to "
                f"{MAX_POSITION}"
            )
        states[row, : len(given)] = given
        if recording.rewards is not None:
            rewards[row, : steps[row]] = recording.rewards[part][1:]
    last = states[np.arange(len(parts)), steps]
    goal = last[:, 0] >= environment.goal_position
    return Episodes(
        seeds=recording.seeds[recording.part(reaches)],
        states=states,
        actions=np.full(
            (len(parts), longest),
            np.nan if environment.continuous else NO_ACTION,
            environment.action_dtype,
        ),
        rewards=rewards,
        steps=steps,
        returns=np.array([np.cumsum(r[:n])[-1] for r, n in zip(rewards, steps, strict=True)]),
        terminated=goal & (last[:, 1] >= environment.goal_velocity),
        truncated=steps >= environment.max_steps,
    )
