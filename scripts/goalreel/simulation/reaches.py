"""Reaches: slots that are filled by their first attempt that reaches the goal.

What counts as reaching is the user's `success`: that the environment terminates the episode, as
Mountain Car does at the goal, that its time limit truncates it, or a return.

Reach i tries the episodes of seeds S(i, 0), S(i, 1), ... (seeding.episode_seeds) and so depends on
the root seed, the environment, the policy and i alone, not on its shard. Where episodes are filmed
and not reaches, `success` is None: every episode counts, so that each slot has one attempt.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from goalreel.environments.environment import Environment
from goalreel.environments.mountain_car import probe
from goalreel.environments.registry import describe
from goalreel.environments.seeding import episode_seeds
from goalreel.errors import GoalreelError
from goalreel.policies.policy import Policy
from goalreel.provenance.spec import NO_SPEC, Spec
from goalreel.simulation.episodes import Episode, EpisodeRecorder, simulate_episodes
from goalreel.simulation.trajectories import Attempts, Trajectories, concatenate

_STEPS = "states", "actions", "rewards"  # of an episode
_SLOTS = 4096  # that are filled together, which bounds the memory


def simulate_reaches(
    reaches: range,
    root_seed: int,
    environment: Environment,
    policy: Policy,
    max_attempts: int,
    show_failures: bool = False,
    spec: Spec = NO_SPEC,
    success: str | float | None = "terminated",
    recorder: EpisodeRecorder | None = None,
    seeds: Sequence[int] | None = None,
) -> Trajectories:
    """Fill the slots of a shard.

    Args:
        reaches: the slots' numbers.
        root_seed: of the run, from which every episode's seed derives.
        environment: what the episodes are played in.
        policy: who plays them.
        max_attempts: the most episodes for one slot.
        show_failures: whether to keep the states of all episodes, not only of those that reach
            the goal.
        spec: how the trajectories are made.
        success: "terminated", "truncated" or the least return that counts as reaching the goal;
            None if every episode counts.
        recorder: what films the episodes, None for nothing.
        seeds: the slots', where every episode counts; None for seeds derived from the root seed.

    Raises:
        GoalreelError: slots stay open after `max_attempts` episodes.

    """
    policy.check(environment)
    batches = []
    for first in range(reaches.start, reaches.stop, _SLOTS):
        slots = np.arange(first, min(first + _SLOTS, reaches.stop))
        given = None if seeds is None else np.array(seeds)[slots - reaches.start]
        # Attempt a of all slots that are still open, round by round.
        for attempt in range(max_attempts):
            if len(slots) == 0:
                break
            started = episode_seeds(root_seed, slots, attempt) if given is None else given
            episodes = simulate_episodes(started, environment, policy, recorder=recorder)
            batch = to_batch(slots, attempt, started, episodes, environment, success, show_failures)
            batches.append(batch)
            slots = slots[~batch.rows.reached]
    reached_count = sum(int(part.rows.reached.sum()) for part in batches)
    if reached_count < len(reaches):
        still_open = len(reaches) - reached_count
        tried = sum(len(part.rows.reach) for part in batches)
        raise GoalreelError(
            f"reaches {reaches.start} to {reaches.stop - 1}: {reached_count} of {len(reaches)} "
            f"reached the goal in {tried} episodes, {still_open} still open after "
            f"max_attempts_per_reach: {max_attempts}; raise max_attempts_per_reach or let the "
            f"policy reach more often ({_hint(environment, success)})"
        )
    return assemble(batches, spec, recorder)


def simulate_attempts(
    attempts: Attempts,
    environment: Environment,
    policy: Policy,
    spec: Spec,
    recorder: EpisodeRecorder | None = None,
) -> Trajectories:
    """Simulate attempts again from their seeds; the result films them all, in their order.

    Raises GoalreelError if an episode differs from its row.
    """
    episodes = simulate_episodes(attempts.seed, environment, policy, recorder=recorder)
    again = [(len(one.rewards), one.return_) for one in episodes]
    if again != list(zip(attempts.steps.tolist(), attempts.return_.tolist(), strict=True)):
        raise GoalreelError(
            "attempts simulated again from their seeds differ from the recorded ones"
        )
    return assemble([AttemptBatch(attempts, episodes)], spec, recorder)


def _hint(environment, success: str | float | None) -> str:
    if describe(environment.id).is_mountain_car and success == "terminated":
        return "policy.name: pump, a lower policy.epsilon, a higher policy.force"
    return f"a reach needs success: {success}"


def has_reached(success: str | float | None, terminated, truncated, returned) -> np.ndarray:
    """Return which episodes reached the goal, given (episodes,) arrays or one episode's values."""
    if success is None:
        return np.ones(np.shape(terminated), bool)
    if isinstance(success, str):
        return {"terminated": terminated, "truncated": truncated}[success]
    return returned >= success


class AttemptBatch(NamedTuple):
    """Episodes that were played side by side."""

    rows: Attempts
    episodes: list[Episode | None]  # of each row, None where it is not kept


def to_batch(
    reaches: np.ndarray,
    attempt: int | np.ndarray,
    seeds: np.ndarray,
    episodes: Sequence[Episode],
    environment: Environment,
    success: str | float | None,
    show_failures: bool = True,
) -> AttemptBatch:
    """Return episodes that are an attempt at each reach, of this number or these.

    show_failures: whether to keep the episodes that did not reach the goal.
    """
    terminated = np.array([one.terminated for one in episodes])
    truncated = np.array([one.truncated for one in episodes])
    returns = np.array([one.return_ for one in episodes])
    positions = np.full(len(episodes), np.nan)
    if describe(environment.id).is_mountain_car:
        positions = np.array([one.states[0, 0] for one in episodes])
    reached = has_reached(success, terminated, truncated, returns)
    rows = Attempts(
        reach=reaches,
        attempt=np.full(len(reaches), attempt),
        seed=seeds,
        initial_position=positions,
        steps=np.array([len(one.rewards) for one in episodes]),
        return_=returns,
        terminated=terminated,
        truncated=truncated,
        reached=reached,
    )
    is_kept = reached | show_failures
    return AttemptBatch(
        rows, [one if keep else None for one, keep in zip(episodes, is_kept, strict=True)]
    )


def assemble(
    batches: Sequence[AttemptBatch], spec: Spec, recorder: EpisodeRecorder | None = None
) -> Trajectories:
    """Return the trajectories of all batches, by reach and attempt: every row, and what is kept.

    spec: how they are made; recorder: what has filmed them, which gets the order of the film.
    """
    attempts = concatenate(part.rows for part in batches)
    played = [one for part in batches for one in part.episodes]
    is_kept = np.array([one is not None for one in played])
    order = np.lexsort((attempts.attempt, attempts.reach))
    made = order[is_kept[order]]  # the film's episodes, by their place among all rows
    place = np.argsort(np.argsort(made))  # and among those that are kept
    if recorder is not None:
        recorder.arrange(place)
    episodes, kept = attempts.take(made), [played[row] for row in made.tolist()]
    return Trajectories(
        np.concatenate([[0], np.cumsum(episodes.steps + 1)]),
        *(np.concatenate([getattr(one, part) for one in kept]) for part in _STEPS),
        episodes=episodes,
        attempts=attempts.take(order),
        probe=probe(),
        spec=spec,
    )
