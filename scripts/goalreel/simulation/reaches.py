"""Simulate reaches: each reach repeats attempts until one of them reaches the goal.

The option `success` defines the goal: the environment terminates the episode (as Mountain Car does
at the flag), its time limit truncates it, or its return is high enough. If a run films episodes
instead of reaches, `success` is None: every episode counts, so each reach has one attempt.

Attempt a of reach i plays seed S(i, a), see `seeding.episode_seeds`. A reach therefore depends only
on the root seed, the environment, the policy and i, and not on its shard.
"""

from collections.abc import Sequence
from dataclasses import fields
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

_STEPS = "states", "actions", "rewards"  # fields of an episode
OWN_COLUMNS = {field.name.rstrip("_") for field in fields(Attempts)}  # of goalreel's tables
OWN_COLUMNS |= {"episode", "env", "shard", "first_frame", "frames", "start_s", "card_frames"}
OWN_COLUMNS |= {"share", "share_low", "share_high", "played", "filmed"}
OWN_COLUMNS |= {"reproducible", "draft", "batched", "outcome", ""}
_MAX_REACHES = 4096  # simulated together, to limit memory


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
    """Simulate the reaches of a shard.

    `success` is "terminated", "truncated", or the least return that counts as reaching the goal;
    None if every episode counts, which then may have given seeds. `show_failures` keeps the states
    of attempts that fail. Raises GoalreelError if a reach fails in all attempts.
    """
    policy.check(environment)
    batches = []
    for first in range(reaches.start, reaches.stop, _MAX_REACHES):
        pending = np.arange(first, min(first + _MAX_REACHES, reaches.stop))
        fixed = None if seeds is None else np.array(seeds)[pending - reaches.start]
        # Each round plays one attempt of every reach that is still pending.
        for attempt in range(max_attempts):
            if len(pending) == 0:
                break
            own = episode_seeds(root_seed, pending, attempt) if fixed is None else fixed
            episodes = simulate_episodes(own, environment, policy, recorder=recorder)
            batch = to_batch(pending, attempt, own, episodes, environment, success, show_failures)
            batches.append(batch)
            pending = pending[~batch.rows.reached]
        if len(pending) > 0:
            fix = f"relax success={success}"
            if describe(environment.id).is_mountain_car and success == "terminated":
                fix = "set policy.name=pump, a lower policy.epsilon or a higher policy.force"
            raise GoalreelError(
                f"reach {pending[0]}: The policy failed in all {max_attempts} attempts. Raise "
                f"max_attempts_per_reach, {fix}, or use a better policy.\n"
                f"  reaches that failed in this job: {len(pending)} of {len(reaches)}"
            )
    return assemble(batches, spec, recorder)


def simulate_attempts(
    attempts: Attempts,
    environment: Environment,
    policy: Policy,
    spec: Spec,
    recorder: EpisodeRecorder | None = None,
) -> Trajectories:
    """Replay attempts from their seeds, and return the trajectories of all, in the same order.

    Raises GoalreelError if a replayed episode differs from its row.
    """
    batches = []
    for first in range(0, len(attempts.seed), _MAX_REACHES):
        rows = attempts.take(slice(first, first + _MAX_REACHES))
        episodes = simulate_episodes(rows.seed, environment, policy, recorder=recorder)
        played = [(len(e.rewards), e.return_, e.terminated, e.truncated) for e in episodes]
        columns = rows.steps, rows.return_, rows.terminated, rows.truncated
        expected = zip(rows.seed, *(column.tolist() for column in columns), strict=True)
        for (seed, *before), now in zip(expected, played, strict=True):
            if not np.array_equal(before, now, equal_nan=True):
                raise GoalreelError(
                    f"env: '{environment.id}' replays seed {seed} differently. If the environment "
                    "or the policy draws random numbers, draw them from the seed. Otherwise delete "
                    "the results, and film again with the versions that are installed now."
                )
        batches.append(AttemptBatch(rows, episodes))
    return assemble(batches, spec, recorder)


def has_reached(success: str | float | None, terminated, truncated, returned) -> np.ndarray:
    """Return whether episodes reached the goal, for arguments that are arrays or scalars."""
    if success is None:
        return np.ones(np.shape(terminated), bool)
    if isinstance(success, str):
        return {"terminated": terminated, "truncated": truncated}[success]
    return returned >= success


class AttemptBatch(NamedTuple):
    """Attempts that were played in one batch."""

    rows: Attempts
    episodes: list[Episode | None]  # one for each row, None if it is not kept


def to_batch(
    reaches: np.ndarray,
    attempt: int | np.ndarray,
    seeds: np.ndarray,
    episodes: Sequence[Episode],
    environment: Environment,
    success: str | float | None,
    show_failures: bool = True,
) -> AttemptBatch:
    """Return episodes as a batch: one attempt at each of `reaches`, (episodes,).

    `success` and `show_failures` are as in `simulate_reaches`.
    """
    terminated = np.array([episode.terminated for episode in episodes])
    truncated = np.array([episode.truncated for episode in episodes])
    returns = np.array([episode.return_ for episode in episodes])
    positions = np.full(len(episodes), np.nan)
    if describe(environment.id).is_mountain_car:
        positions = np.array([episode.states[0, 0] for episode in episodes])
    reached = has_reached(success, terminated, truncated, returns)
    names = [*episodes[0].info]
    if other := next((episode for episode in episodes if [*episode.info] != names), None):
        raise GoalreelError(
            f"env: The last info['columns'] of '{environment.id}' has the names {names} after seed "
            f"{episodes[0].seed}, {[*other.info]} after seed {other.seed}. Return the same names."
        )
    if taken := OWN_COLUMNS.intersection(names):
        problem = f"'{environment.id}' has {min(taken)!r} in info['columns'], a column of goalreel"
        raise GoalreelError(f"env: {problem}. Choose another name.")
    info = np.array([(*e.info.values(),) for e in episodes], [(name, float) for name in names])
    steps = np.array([len(episode.rewards) for episode in episodes])
    started = reaches, np.full(len(reaches), attempt), seeds, positions
    rows = Attempts(*started, steps, returns, terminated, truncated, reached, info)
    is_kept = reached | show_failures
    pairs = zip(episodes, is_kept, strict=True)
    return AttemptBatch(rows, [episode if keep else None for episode, keep in pairs])


def assemble(
    batches: Sequence[AttemptBatch], spec: Spec, recorder: EpisodeRecorder | None = None
) -> Trajectories:
    """Return all trajectories by reach and attempt, and tell a recorder the film order."""
    attempts = concatenate(part.rows for part in batches)
    played = [episode for part in batches for episode in part.episodes]
    is_kept = np.array([episode is not None for episode in played])
    order = np.lexsort((attempts.attempt, attempts.reach))
    filmed = order[is_kept[order]]  # row numbers, in film order
    place = np.argsort(np.argsort(filmed))  # the same, counting only the kept rows
    if recorder is not None:
        recorder.arrange(place)
    episodes, kept = attempts.take(filmed), [played[row] for row in filmed.tolist()]
    return Trajectories(
        np.concatenate([[0], np.cumsum(episodes.steps + 1)]),
        *(np.concatenate([getattr(episode, name) for episode in kept]) for name in _STEPS),
        episodes=episodes,
        attempts=attempts.take(order),
        probe=probe(),
        spec=spec,
        poses=None if kept[0].poses is None else np.concatenate([e.poses for e in kept]),
        signals=_signals(kept),
    )


def _signals(episodes: Sequence[Episode]) -> dict[str, np.ndarray]:
    """Return the signals of all episodes end to end, with NaN for those that lack one."""
    shapes = {name: a.shape[1:] for e in episodes for name, a in e.signals.items()}

    def of(episode: Episode, name: str) -> np.ndarray:
        missing = np.full((len(episode.rewards), *shapes[name]), np.nan, np.float32)
        return episode.signals.get(name, missing)

    return {name: np.concatenate([of(e, name) for e in episodes]) for name in shapes}
