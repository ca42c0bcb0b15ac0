"""Reaches: slots that are filled by their first attempt that reaches the goal.

What counts as reaching is the user's `success`: that the environment terminates the episode, as
Mountain Car does at the goal, that its time limit truncates it, or a return.

Reach i tries the episodes of seeds S(i, 0), S(i, 1), ... (seeding.episode_seeds) and so depends on
the root seed, the environment, the policy and i alone, not on its shard. Where episodes are filmed
and not reaches, `success` is None: every episode counts, so that each slot has one attempt.
"""

from collections.abc import Sequence

import numpy as np

from goalreel.arrays import ranges
from goalreel.environments.environment import Environment
from goalreel.environments.physics import probe
from goalreel.environments.registry import describe
from goalreel.environments.seeding import episode_seeds
from goalreel.errors import GoalreelError
from goalreel.policies.policy import Policy
from goalreel.provenance.spec import NO_SPEC, Spec
from goalreel.simulation.episodes import Camera, Episodes, simulate_episodes
from goalreel.simulation.trajectories import Attempts, Trajectories

_SLOTS = 4096  # that are filled together, which bounds the memory


def simulate_reaches(
    reaches: range,
    root_seed: int,
    environment: Environment,
    policy: Policy,
    max_attempts: int,
    show: str = "reaches",
    spec: Spec = NO_SPEC,
    success: str | float | None = "terminated",
    camera: Camera | None = None,
    seeds: Sequence[int] | None = None,
) -> Trajectories:
    """Fill the slots of a shard.

    Args:
        reaches: the slots' numbers.
        root_seed: of the run, from which every episode's seed derives.
        environment: what the episodes are played in.
        policy: who plays them.
        max_attempts: the most episodes for one slot.
        show: "reaches" keeps the states of the episodes that reach the goal, "attempts" of all.
        spec: how the trajectories are made.
        success: "terminated", "truncated" or the least return that counts as reaching the goal;
            None if every episode counts.
        camera: what films the episodes, None for nothing.
        seeds: the slots', where every episode counts; None for seeds derived from the root seed.

    Raises:
        GoalreelError: slots stay open after `max_attempts` episodes.

    """
    policy.check(environment)
    parts = []
    for first in range(reaches.start, reaches.stop, _SLOTS):
        slots = np.arange(first, min(first + _SLOTS, reaches.stop))
        given = None if seeds is None else np.array(seeds)[slots - reaches.start]
        played = environment, policy, max_attempts, show, success, camera
        parts += _fill(slots, root_seed, given, *played)
    attempts = concatenate([rows for rows, _ in parts])
    kept = zip(*(kept for _, kept in parts), strict=True)
    states, actions, rewards = (np.concatenate(arrays) for arrays in kept)

    order = np.lexsort((attempts.attempt, attempts.reach))
    attempts = attempts.take(order)
    open_slots = len(reaches) - int(attempts.reached.sum())
    if open_slots:
        raise GoalreelError(
            f"reaches {reaches.start} to {reaches.stop - 1}: {len(reaches) - open_slots} of "
            f"{len(reaches)} reached the goal in {len(attempts.reach)} episodes, {open_slots} "
            f"{'is' if open_slots == 1 else 'are'} still open after max_attempts: {max_attempts}; "
            f"raise max_attempts or let the policy reach more often "
            f"({_hint(environment, success)})"
        )
    filmed = attempts.reached if show == "reaches" else np.ones(len(order), bool)
    episodes = attempts.take(filmed)
    # Episodes were kept in the order of their making; the film goes by reach and attempt.
    place = np.argsort(np.argsort(order[filmed]))
    if camera is not None:
        camera.arrange(place)
    return assemble(states, actions, rewards, place, episodes, attempts, spec)


def simulate_attempts(
    attempts: Attempts,
    environment: Environment,
    policy: Policy,
    spec: Spec,
    camera: Camera | None = None,
) -> Trajectories:
    """Simulate attempts again from their seeds; the result films them all, in their order.

    Raises GoalreelError if an episode differs from its row.
    """
    episodes = simulate_episodes(attempts.seed, environment, policy, camera=camera)
    if not (
        np.array_equal(episodes.steps, attempts.steps)
        and np.array_equal(episodes.returns, attempts.return_)
    ):
        raise GoalreelError(
            "attempts simulated again from their seeds differ from the recorded ones"
        )
    everything = np.ones(len(attempts.reach), bool)
    states, actions, rewards = valid(episodes, everything)
    place = np.arange(len(everything))
    return assemble(states, actions, rewards, place, attempts, attempts, spec)


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


def outcomes(reaches, attempt: int, episodes: Episodes, environment, success) -> Attempts:
    """Return the rows of episodes that are attempt number `attempt` of each reach."""
    unknown = np.full(len(reaches), np.nan)
    on_track = describe(environment.id).is_mountain_car
    return Attempts(
        reach=reaches,
        attempt=np.full(len(reaches), attempt),
        seed=episodes.seeds,
        initial_position=episodes.states[:, 0, 0].copy() if on_track else unknown,
        steps=episodes.steps,
        return_=episodes.returns,
        terminated=episodes.terminated,
        truncated=episodes.truncated,
        reached=has_reached(success, episodes.terminated, episodes.truncated, episodes.returns),
    )


def _fill(slots, root_seed, given, environment, policy, max_attempts, show, success, camera):
    """Return (rows, kept episodes) of each round: attempt a of all slots that are still open.

    given: (slots,) their seeds, where one round fills them all; None for derived ones.
    """
    rounds = []
    for attempt in range(max_attempts):
        seeds = episode_seeds(root_seed, slots, attempt) if given is None else given
        episodes = simulate_episodes(seeds, environment, policy, camera=camera)
        rows = outcomes(slots, attempt, episodes, environment, success)
        keep = rows.reached if show == "reaches" else np.ones(len(slots), bool)
        rounds.append((rows, valid(episodes, keep)))
        slots = slots[~rows.reached]
        if len(slots) == 0:
            break
    return rounds


def valid(episodes: Episodes, keep: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the kept episodes' states, actions and rewards, end to end, without the padding."""
    steps = episodes.steps[keep]
    time = np.arange(episodes.states.shape[1])
    played = time[:-1] < steps[:, None]
    states = episodes.states[keep][time <= steps[:, None]]
    return states, episodes.actions[keep][played], episodes.rewards[keep][played]


def concatenate(rows: Sequence[Attempts]) -> Attempts:
    """Return all rows, end to end."""
    columns = zip(*(vars(part).values() for part in rows), strict=True)
    return Attempts(*(np.concatenate(column) for column in columns))


def assemble(states, actions, rewards, place, episodes, attempts, spec) -> Trajectories:
    """Put episodes, given end to end in the order of their making, into film order.

    place: (episodes,) where each filmed episode stands among the made ones.
    """
    lengths = np.empty(len(place), np.int64)
    lengths[place] = episodes.steps
    starts = np.cumsum(lengths) - lengths
    steps = episodes.steps
    offsets = np.concatenate([[0], np.cumsum(steps + 1)])
    return Trajectories(
        offsets=offsets,
        states=states[ranges(starts[place] + place, steps + 1)],
        actions=actions[ranges(starts[place], steps)],
        rewards=rewards[ranges(starts[place], steps)],
        episodes=episodes,
        attempts=attempts,
        probe=probe(),
        spec=spec,
    )
