"""Episodes: what a policy does from a seed until the environment ends it.

An episode is a function of its seed, environment and policy alone, whatever is simulated beside
it.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from goalreel.environments.environment import Environment, SubEnvs
from goalreel.errors import GoalreelError
from goalreel.policies.policy import Policy

_ROWS = 1024  # steps that memory is allocated for at first
_MAX_STEPS = 200_000  # one that goes on so long has no end; Atari's longest takes 108,000


@dataclass(frozen=True)
class Episode:
    """An episode as it is recorded."""

    seed: int
    states: np.ndarray  # (steps + 1, width) float64, row 0 the reset state
    actions: np.ndarray  # (steps, *stored_shape)
    rewards: np.ndarray  # (steps,) float64
    terminated: bool  # by its last step
    truncated: bool

    @property
    def return_(self) -> float:
        """The rewards summed in order."""
        return 0.0 + float(np.cumsum(self.rewards)[-1])


class EpisodeRecorder(Protocol):
    """Films episodes while they are played, a batch at a time."""

    def on_batch_start(self, indices: np.ndarray, seeds: np.ndarray) -> bool:
        """Return whether a batch is filmed while played; indices: (num_envs,) its episodes."""

    def on_step(self, indices: np.ndarray, batch: SubEnvs) -> None:
        """Take the next picture of each episode that goes on."""

    def on_episode_end(self, index: int, episode: Episode) -> None:
        """Take note that an episode has ended."""

    def finish(self) -> None:
        """Take note that all episodes of the batch have ended."""

    def arrange(self, place: np.ndarray) -> None:
        """Take the order of the film: place[i] tells which of those kept is its episode i."""


def simulate_episodes(
    seeds: np.ndarray,
    environment: Environment,
    policy: Policy,
    step_limits: np.ndarray | None = None,
    recorder: EpisodeRecorder | None = None,
    watch: Callable[[np.ndarray, int, Sequence], None] | None = None,
) -> list[Episode]:
    """Play one episode from each seed, many of them side by side.

    The result of an episode is the same for any company, so one attempt is replayed by a batch of
    one.

    Args:
        seeds: (episodes,) integers in [0, 2**64), as `env.reset(seed=...)` takes them.
        environment: of `make_environment`.
        policy: of `make_policy`.
        step_limits: (episodes,) after how many steps to stop, if the environment does not end an
            episode before; None to play them to their end.
        recorder: what films them, None for nothing.
        watch: called after the resets and each step with the indices of those that go on, the
            number of steps, and what the policy sees of each.

    Raises:
        GoalreelError: an episode does not end, or the environment or the policy fails.

    """
    seeds = np.asarray(seeds)
    count, space = len(seeds), environment.actions
    rows = min(environment.max_episode_steps or _ROWS, _ROWS)
    # Time is the first axis while stepping: each step then writes contiguous rows.
    states = np.empty((rows + 1, environment.width, count))
    actions = np.zeros((rows, count, *space.stored_shape), space.stored_dtype)
    rewards = np.zeros((rows, count))
    episodes: dict[int, Episode] = {}  # by index

    all_indices, all_generators = np.arange(count), policy.generators(seeds)
    for first in range(0, count, environment.max_envs):
        together = (first <= all_indices) & (all_indices < first + environment.max_envs)
        indices, generators = all_indices[together], all_generators.take(together)
        everyone = slice(first, first + len(indices))  # faster than the sub-environments' numbers
        filming = recorder is not None and recorder.on_batch_start(indices, seeds[indices])
        with contextlib.closing(environment.sub_envs(seeds[indices])) as batch:
            _write(states[0], everyone, batch.states())
            if filming:
                recorder.on_step(indices, batch)
            if watch is not None:
                watch(indices, 0, batch.observations())
            running, t = np.ones(len(indices), bool), 0
            while running.any():
                if t == (environment.max_episode_steps or _MAX_STEPS):
                    raise GoalreelError(
                        f"{environment.id}: the episode of seed {seeds[indices[running][0]]} has "
                        f"not ended after {t:,} steps; set max_episode_steps, its time limit"
                    )
                if t == len(actions):
                    states, actions, rewards = (
                        np.concatenate([one, np.zeros_like(one)])
                        for one in (states, actions, rewards)
                    )
                chosen, generators = policy.act(batch.observations(), environment, generators)
                reward, goal, limit = batch.step(chosen)
                actions[t, everyone], rewards[t, everyone] = chosen, reward
                t += 1
                _write(states[t], everyone, batch.states())
                if filming:
                    recorder.on_step(indices, batch)
                if watch is not None:
                    watch(indices, t, batch.observations())
                over = running & (goal | limit)
                if step_limits is not None:
                    over |= running & (step_limits[indices] == t)
                for place in np.flatnonzero(over).tolist():
                    index, over_by = int(indices[place]), (bool(goal[place]), bool(limit[place]))
                    played = states[: t + 1, :, index], actions[:t, index], rewards[:t, index]
                    copies = (part.copy() for part in played)
                    episodes[index] = Episode(int(seeds[index]), *copies, *over_by)
                    if recorder is not None:
                        recorder.on_episode_end(index, episodes[index])
                running &= ~over
                if 0 < np.count_nonzero(running) < (1 - environment.idle_share) * len(indices):
                    batch, generators = batch.take(running), generators.take(running)
                    indices = everyone = indices[running]
                    running = np.ones(len(indices), bool)
        if recorder is not None:
            recorder.finish()

    return [episodes[index] for index in range(count)]


def _write(row: np.ndarray, indices: np.ndarray | slice, states: Sequence[np.ndarray]) -> None:
    """Write the sub-environments' states into a row, (width, episodes)."""
    for number, column in zip(row, states, strict=True):
        number[indices] = column
