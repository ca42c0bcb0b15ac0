"""Recorded episodes, played as they are: reach i is the file's episode i, reached or not.

Actions are played from their seeds by the environment itself. A recording that stops before its
episode ends is shown up to there, neither terminated nor truncated; one that goes on after it is
refused. States, of the Mountain Cars alone, are shown as they are. The file is read in recording.
"""

from dataclasses import dataclass, replace

import numpy as np

from goalreel.environments.gymnasium_env import GymEnvironment
from goalreel.environments.physics import MAX_POSITION, MIN_POSITION, Environment
from goalreel.errors import GoalreelError
from goalreel.simulation.episodes import Episodes, simulate_episodes
from goalreel.simulation.reaches import assemble, outcomes, valid
from goalreel.simulation.recording_file import Recording
from goalreel.simulation.trajectories import Trajectories

NO_ACTION = -1  # in MountainCarContinuous-v0 NaN: what states were recorded without


def play_recording(
    recording: Recording, reaches: range, environment, spec: str, success: str | float
) -> Trajectories:
    """Return the trajectories of a shard of recorded episodes, all of them for the film.

    Raises GoalreelError if the file has fewer episodes, and for one that cannot be played.
    """
    if reaches.stop > len(recording):
        raise GoalreelError(
            f"policy.file: {recording.path} has {len(recording)} episodes, and reach "
            f"{reaches.stop - 1} is asked for; set reaches to {len(recording)} or fewer"
        )
    if recording.states is not None:
        episodes = _shown(recording, reaches, environment)
    else:
        actions = [_actions(recording, e, environment) for e in reaches]
        seeds = recording.seeds[reaches.start : reaches.stop]
        play = _play_native if isinstance(environment, Environment) else _play_gym
        episodes = play(recording, reaches, seeds, actions, environment)
    rows = outcomes(np.array(reaches), 0, episodes, environment, success)
    everyone = np.ones(len(reaches), bool)
    place = np.arange(len(reaches))
    return assemble(*valid(episodes, everyone), place, rows, rows, spec)


def _actions(recording: Recording, episode: int, environment) -> np.ndarray:
    """Return an episode's actions as the trajectory file holds them."""
    rows, space = recording.actions[recording.rows(episode)], environment.actions
    who = f"policy.file: {recording.path}, episode {episode}:"
    if rows.shape[1] != len(space.low):
        raise GoalreelError(
            f"{who} an action is {rows.shape[1]} numbers; {environment.id} takes {space}"
        )
    if space.whole and rows.dtype.kind == "f" and (rows == np.floor(rows)).all():
        rows = rows.astype(np.int64)
    actions = space.checked(rows.reshape(len(rows), *space.shape), len(rows), who)
    if isinstance(environment, Environment):
        return actions.reshape(len(rows)).astype(environment.action_dtype)
    return actions


@dataclass(frozen=True)
class _Cursor:
    """Where each lane stands in its recording."""

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
        step = min(cursor.step, self.actions.shape[1] - 1)
        return self.actions[cursor.lanes, step], _Cursor(cursor.lanes, cursor.step + 1)


def _play_native(recording, reaches, seeds, actions, environment: Environment) -> Episodes:
    """Play Mountain Car through all actions, side by side, and cut what they do not cover."""
    lengths = np.array([len(part) for part in actions])
    script = np.zeros((len(actions), lengths.max()), environment.action_dtype)
    for row, part in enumerate(actions):
        script[row, : len(part)] = part
    episodes = simulate_episodes(seeds, environment, _Script(script))
    for row in np.flatnonzero(lengths > episodes.steps)[:1].tolist():
        raise _too_long(recording, reaches[row], lengths[row], episodes.steps[row])
    cut = lengths < episodes.steps
    returns = episodes.returns.copy()
    for row in np.flatnonzero(cut).tolist():
        returns[row] = np.cumsum(episodes.rewards[row, : lengths[row]])[-1]  # in order
    return replace(
        episodes,
        steps=lengths,
        returns=returns,
        terminated=episodes.terminated & ~cut,
        truncated=episodes.truncated & ~cut,
    )


def _play_gym(recording, reaches, seeds, actions, environment: GymEnvironment) -> Episodes:
    lengths = np.array([len(part) for part in actions])
    count, longest, space = len(actions), int(lengths.max()), environment.actions
    states = np.zeros((count, longest + 1, environment.width))
    script = np.zeros((count, longest, *space.stored_shape), space.stored_dtype)
    rewards, returns = np.zeros((count, longest)), np.zeros(count)
    endings = np.zeros((count, 2), bool)
    for row, (seed, part) in enumerate(zip(seeds.tolist(), actions, strict=True)):
        script[row, : len(part)] = part
        for step in environment.play(seed, part):
            states[row, step.step] = environment.stored(step.observation)
            endings[row] = step.terminated, step.truncated
            returns[row] += step.reward
            if step.step:
                rewards[row, step.step - 1] = step.reward
            if endings[row].any() and step.step < len(part):
                raise _too_long(recording, reaches[row], len(part), step.step)
    return Episodes(seeds, states, script, rewards, lengths, returns, *endings.T)


def _too_long(recording: Recording, episode: int, actions: int, steps: int) -> GoalreelError:
    return GoalreelError(
        f"policy.file: {recording.path}, episode {episode}: it has {actions} actions, and the "
        f"environment ends the episode of seed {recording.seeds[episode]} after {steps} steps; "
        f"was it recorded with another env, env_kwargs, max_steps or seed?"
    )


def _shown(recording: Recording, reaches: range, environment) -> Episodes:
    """Return recorded states as episodes; their actions are not known."""
    if not isinstance(environment, Environment):
        raise GoalreelError(
            f"policy.file: {recording.path} holds positions and velocities, which are Mountain "
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
            place = f"policy.file: {recording.path}, episode {reaches[row]}:"
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
        seeds=recording.seeds[reaches.start : reaches.stop],
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
