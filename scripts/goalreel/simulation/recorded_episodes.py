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
from goalreel.simulation.episodes import Episodes, FrameRecorder, simulate_episodes
from goalreel.simulation.minari_episodes import compare_observations, compare_outcomes
from goalreel.simulation.reaches import assemble, outcomes, to_batch
from goalreel.simulation.recording_file import RecordedEpisode
from goalreel.simulation.trajectories import Trajectories

NO_ACTION = -1  # in MountainCarContinuous-v0 NaN: what states were recorded without
_FEW = 1 << 16  # rows of a batch of any lengths


def play_recording(
    recorded: Sequence[RecordedEpisode],
    environment: Environment,
    spec: Spec,
    success: str | float | None,
    camera: FrameRecorder | None = None,
) -> Trajectories:
    """Return the trajectories of a shard of recorded episodes, all of them for the film.

    Raises GoalreelError for an episode that cannot be played.
    """
    batches = []
    for some in _batches(recorded):
        if some[0].states is not None:
            episodes = _shown(some, environment)
        else:
            episodes = _played(some, environment, camera)
        reaches = np.array([one.number for one in some])
        batches.append(to_batch(outcomes(reaches, 0, episodes, environment, success), episodes))
    return assemble(batches, spec, camera)


def _batches(recorded: Sequence[RecordedEpisode]) -> Iterator[Sequence[RecordedEpisode]]:
    """Yield neighbours that are played side by side, so that memory follows the file's rows.

    A batch takes the rows of its longest episode for each: as many as four times its own.
    """
    first = rows = longest = 0
    for number, one in enumerate(recorded):
        length = len(one.actions if one.states is None else one.states)
        rows, longest = rows + length, max(longest, length)
        if longest * (number + 1 - first) > max(4 * rows, _FEW):
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
    recorded: Sequence[RecordedEpisode], environment: Environment, camera: FrameRecorder | None
) -> Episodes:
    """Return recorded actions as the environment plays them from their seeds."""
    parts = [_actions(one, environment) for one in recorded]
    lengths, seeds = np.array([len(part) for part in parts]), _seeds(recorded)
    has_seen = recorded[0].observations is not None
    watch = partial(compare_observations, recorded) if has_seen else None
    episodes = simulate_episodes(seeds, environment, _Script(parts), lengths, camera, watch)
    compare_outcomes(recorded, episodes)
    for row in np.flatnonzero(episodes.steps < lengths)[:1].tolist():
        raise GoalreelError(
            f"{recorded[row].label}: it has {lengths[row]} actions, and the environment ends the "
            f"episode of seed {seeds[row]} after {episodes.steps[row]} steps; was it recorded with "
            f"another env, env_kwargs, max_steps or seed?"
        )
    return episodes


def _seeds(recorded: Sequence[RecordedEpisode]) -> np.ndarray:
    return np.array([one.seed for one in recorded])


def _padded(parts: Sequence[np.ndarray], fill: float = 0) -> np.ndarray:
    """Return arrays of different lengths as one, (parts, longest, ...)."""
    longest = max(map(len, parts))
    padded = np.full((len(parts), longest, *parts[0].shape[1:]), fill, parts[0].dtype)
    for row, part in zip(padded, parts, strict=True):
        row[: len(part)] = part
    return padded


def _shown(recorded: Sequence[RecordedEpisode], environment: Environment) -> Episodes:
    """Return recorded states as episodes; their actions are not known."""
    if not describe(environment.id).is_mountain_car:
        raise GoalreelError(
            f"{recorded[0].label.rpartition(',')[0]} holds positions and velocities, which are "
            f"Mountain Car's; episodes of {environment.id} are recorded by their seeds and actions"
        )
    # As float32, in which MountainCarContinuous-v0 keeps them, the limits lie further out.
    low, high = np.float32([MIN_POSITION, MAX_POSITION]).astype(np.float64)
    for one in recorded:
        on_track = (one.states[:, 0] >= low) & (one.states[:, 0] <= high)
        wrong = np.flatnonzero(~(on_track & np.isfinite(one.states[:, 1])))
        if len(wrong) or len(one.states) < 2:
            what = "one state"
            if len(wrong):
                what = f"state {wrong[0]} is {one.states[wrong[0]].tolist()}"
            raise GoalreelError(
                f"{one.label}: {what}; allowed: two states or more, positions from {MIN_POSITION} "
                f"to {MAX_POSITION}"
            )
    # Every step of MountainCar-v0 costs 1; a force is not known, nor then what it cost.
    cost, no_action = (np.nan, np.nan) if environment.continuous else (-1.0, NO_ACTION)
    parts = [
        np.full(len(one.states) - 1, cost) if one.rewards is None else one.rewards[1:]
        for one in recorded
    ]
    states, rewards = _padded([one.states for one in recorded]), _padded(parts, cost)
    steps = np.array([len(part) for part in parts])
    last = states[np.arange(len(parts)), steps]
    goal = last[:, 0] >= environment.goal_position
    return Episodes(
        seeds=_seeds(recorded),
        states=states,
        actions=np.full(rewards.shape, no_action, environment.action_dtype),
        rewards=rewards,
        steps=steps,
        returns=np.array([np.cumsum(part)[-1] for part in parts]),
        terminated=goal & (last[:, 1] >= environment.goal_velocity),
        truncated=steps >= environment.max_steps,
    )
