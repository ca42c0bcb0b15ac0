"""Simulate episodes: a policy plays from a seed until the environment ends the episode.

An episode depends only on its seed, environment and policy, not on the episodes that are simulated
at the same time.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from goalreel.environments.environment import Environment, SubEnvs
from goalreel.errors import GoalreelError
from goalreel.policies.policy import Policy

_ROWS = 1024  # steps that memory is allocated for initially
_MAX_STEPS = 200_000  # no episode should be longer; Atari's longest takes 108,000


@dataclass(frozen=True)
class Episode:
    """The record of a simulated episode."""

    seed: int
    states: np.ndarray  # (steps + 1, width) float64, from the reset on
    actions: np.ndarray  # (steps, *stored_shape)
    rewards: np.ndarray  # (steps,) float64
    terminated: bool  # at the last step
    truncated: bool
    poses: np.ndarray | None = None  # (steps + 1, num_poses) float64
    info: Mapping[str, float] = field(default_factory=dict)  # at the last step, see SubEnvs
    # The policy's, by name: (steps,) or (steps, numbers) float32, NaN where it gave none.
    signals: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def return_(self) -> float:
        """The sum of the rewards, added in order."""
        return 0.0 + float(np.cumsum(self.rewards)[-1])


class EpisodeRecorder(Protocol):
    """Records the frames of episodes while they are played, one batch at a time."""

    def on_batch_start(self, indices: np.ndarray, seeds: np.ndarray) -> bool:
        """Return whether to record a batch of episodes, given their indices (num_envs,)."""

    def on_step(self, indices: np.ndarray, batch: SubEnvs) -> None:
        """Record the next frame of each running episode."""

    def on_episode_end(self, index: int, episode: Episode) -> None:
        """Handle the end of an episode."""

    def finish(self) -> None:
        """Handle the end of the batch, when all its episodes have ended."""

    def arrange(self, place: np.ndarray) -> None:
        """Set the film order: film episode i is number place[i] of the kept episodes."""


def simulate_episodes(
    seeds: np.ndarray,
    environment: Environment,
    policy: Policy,
    step_limits: np.ndarray | None = None,
    recorder: EpisodeRecorder | None = None,
    watch: Callable[[np.ndarray, int, Sequence], None] | None = None,
) -> list[Episode]:
    """Play one episode from each seed, many of them in parallel.

    The batch does not affect the result, so a batch of one can replay a single attempt. Episodes
    that have not ended stop after their number in `step_limits`, (episodes,). After the resets and
    after each step, `watch` gets the indices of the running episodes, the number of steps, and
    their observations. Raises GoalreelError if an episode does not end, or the environment or the
    policy fails.
    """
    seeds = np.asarray(seeds)
    count, space = len(seeds), environment.actions
    rows = min(environment.max_episode_steps or _ROWS, _ROWS)
    # Time is the first axis while stepping: each step then writes contiguous rows.
    states = np.empty((rows + 1, environment.width, count))
    actions = np.zeros((rows, count, *space.stored_shape), space.stored_dtype)
    rewards = np.zeros((rows, count))
    poses = np.empty((rows + 1, environment.num_poses, count))
    signals: dict[str, np.ndarray] = {}
    episodes: dict[int, Episode] = {}  # by index

    all_indices, all_generators = np.arange(count), policy.generators(seeds)
    for first in range(0, count, environment.max_envs):
        in_batch = (first <= all_indices) & (all_indices < first + environment.max_envs)
        indices, generators = all_indices[in_batch], all_generators.take(in_batch)
        columns = slice(first, first + len(indices))  # faster than an index array
        filming = recorder is not None and recorder.on_batch_start(indices, seeds[indices])
        with contextlib.closing(environment.sub_envs(seeds[indices])) as batch:
            running, t = np.ones(len(indices), bool), 0
            goal = limit = ~running
            while True:
                _write(states[t], columns, batch.states())
                if environment.num_poses:
                    _write(poses[t], columns, batch.poses())
                if filming:
                    recorder.on_step(indices, batch)
                if watch is not None:
                    watch(indices, t, batch.observations())
                over = running & (goal | limit)
                if step_limits is not None:
                    over |= running & (step_limits[indices] == t)
                for place in np.flatnonzero(over).tolist():
                    index, endings = int(indices[place]), (bool(goal[place]), bool(limit[place]))
                    arrays = states[: t + 1, :, index], actions[:t, index], rewards[:t, index]
                    copies, drawn = (array.copy() for array in arrays), poses[: t + 1, :, index]
                    said = {name: array[:t, index].copy() for name, array in signals.items()}
                    played = *copies, *endings, drawn.copy(), batch.info(place), said
                    episodes[index] = Episode(int(seeds[index]), *played)
                    if recorder is not None:
                        recorder.on_episode_end(index, episodes[index])
                running &= ~over
                if not running.any():
                    break
                if np.count_nonzero(running) < (1 - environment.idle_share) * len(indices):
                    batch, generators = batch.take(running), generators.take(running)
                    indices = columns = indices[running]
                    running = np.ones(len(indices), bool)
                if t == (environment.max_episode_steps or _MAX_STEPS):
                    raise GoalreelError(
                        f"max_episode_steps: The {environment.id} episode of seed "
                        f"{seeds[indices[running][0]]} has not ended after {t:,} steps. Set "
                        "max_episode_steps to limit its length."
                    )
                if t == len(actions):
                    states, actions, rewards, poses = (
                        np.concatenate([array, np.zeros_like(array)])
                        for array in (states, actions, rewards, poses)
                    )
                    signals = {
                        name: np.concatenate([array, np.full_like(array, np.nan)])
                        for name, array in signals.items()
                    }
                observed = batch.observations()
                chosen, generators, given = policy.act(observed, environment, generators)
                for name, values in given.items():
                    if name not in signals:
                        shape = len(actions), count, *values.shape[1:]
                        signals[name] = np.full(shape, np.nan, np.float32)
                    if signals[name].shape[2:] != values.shape[1:]:
                        raise GoalreelError(
                            f"policy: The signal {name!r} has another shape at step {t}. Return as "
                            "many numbers at each step."
                        )
                    signals[name][t, columns] = values
                reward, goal, limit = batch.step(chosen)
                actions[t, columns], rewards[t, columns] = chosen, reward
                t += 1
        if recorder is not None:
            recorder.finish()

    return [episodes[index] for index in range(count)]


def _write(row: np.ndarray, indices: np.ndarray | slice, states: Sequence[np.ndarray]) -> None:
    """Write the sub-environments' states into a row of shape (width, episodes)."""
    for target, values in zip(row, states, strict=True):
        target[indices] = values
