"""Play episodes without frames, and store those that are chosen for the film.

`play_episodes` keeps of each episode its row, its actions and its last state. A played file is a
compressed .npz without objects:

    kind, version     "played" and the version of this layout
    spec              JSON: how the file was made
    reach, ...        the columns of Attempts; `reach` is the number of the episode
    last_states       (episodes, width) float64
    actions           (steps, ...): those of the first episode, then of the second, and so on

`write_selection` writes the chosen episodes as a recording (see recording_file), whose arrays
return, terminated, truncated and last_states are those that a replay must match, and

    shares            (episodes, 3) float64: the share of all episodes that are as rare, with the
                      bounds of its 95% interval
    played            the number of all episodes
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from goalreel.cli import ProgressLog
from goalreel.environments.environment import Environment
from goalreel.environments.seeding import episode_seeds
from goalreel.errors import GoalreelError
from goalreel.files import npz
from goalreel.policies.policy import Policy
from goalreel.provenance.spec import Spec
from goalreel.simulation import recording_file
from goalreel.simulation.episodes import Episode, simulate_episodes
from goalreel.simulation.reaches import to_batch
from goalreel.simulation.trajectories import Attempts, Trajectories, concatenate

_VERSION = 1
_KIND = "played"
_COLUMNS = [field.name.rstrip("_") for field in fields(Attempts)]
_MAX_EPISODES = 4096  # whose states are in memory


@dataclass(frozen=True)
class PlayedEpisodes:
    """Episodes that were played without frames."""

    rows: Attempts  # `reach` is the number of the episode
    last_states: np.ndarray  # (episodes, width) float64

    def __len__(self) -> int:
        return len(self.last_states)


def play_episodes(
    numbers: range,
    root_seed: int,
    environment: Environment,
    policy: Policy,
    seeds: Sequence[int] | None = None,
    check: Callable[[Episode, float], None] | None = None,
) -> tuple[PlayedEpisodes, np.ndarray]:
    """Play one episode for each number, and return them with the actions of all, (steps, ...).

    Calls `check` with the first episode and the seconds that its batch took. The other arguments
    are those of `simulate_reaches`.
    """
    policy.check(environment)
    log, began = ProgressLog(), time.monotonic()
    rows, last_states, actions, steps = [], [], [], 0
    size = min(environment.max_envs, _MAX_EPISODES)
    for first in range(numbers.start, numbers.stop, size):
        batch = np.arange(first, min(first + size, numbers.stop))
        fixed = seeds and np.array(seeds[first - numbers.start :][:size])
        started = episode_seeds(root_seed, batch, 0) if fixed is None else fixed
        episodes = simulate_episodes(started, environment, policy)
        if check is not None and first == numbers.start:
            check(episodes[0], time.monotonic() - began)
        rows.append(to_batch(batch, 0, started, episodes, environment, None).rows)
        last_states += [episode.states[-1] for episode in episodes]
        actions.append(np.concatenate([episode.actions for episode in episodes]))
        steps += len(actions[-1])
        log.update(len(last_states), steps)
    return PlayedEpisodes(concatenate(rows), np.array(last_states)), np.concatenate(actions)


def write_played(
    path: str | os.PathLike, played: PlayedEpisodes, actions: np.ndarray, spec: Spec
) -> None:
    """Write a played file; the bytes depend only on the arguments."""
    arrays = npz.header(_KIND, _VERSION) | {"spec": np.array(spec.text)}
    arrays |= dict(zip(_COLUMNS, vars(played.rows).values(), strict=True))
    npz.write(path, arrays | {"last_states": played.last_states, "actions": actions})


def read_played(paths: Sequence[Path]) -> PlayedEpisodes:
    """Read the episodes of played files, without their actions."""
    parts = [npz.read(path, _KIND, _VERSION, [*_COLUMNS, "last_states"]) for path in paths]
    rows = concatenate(Attempts(*map(part.get, _COLUMNS)) for part in parts)
    return PlayedEpisodes(rows, np.concatenate([part["last_states"] for part in parts]))


def write_selection(
    path: str | os.PathLike,
    paths: Sequence[Path],
    played: PlayedEpisodes,
    numbers: np.ndarray,
    shares: np.ndarray,
    spec: Spec,
) -> None:
    """Write the episodes with these numbers, ascending, as a recording.

    `paths` are the files of the played episodes, `shares` as in the module docstring. The spec's
    shard has the size of the played shards.
    """
    rows, size, actions = played.rows, spec.shard["size"], []
    for shard in np.unique(numbers // size).tolist():
        ends = np.cumsum(rows.steps[shard * size : (shard + 1) * size])
        parts = np.split(npz.read(paths[shard], _KIND, _VERSION, ["actions"])["actions"], ends)
        actions += [parts[place] for place in numbers[numbers // size == shard] % size]
    chosen = rows.take(numbers)
    offsets = np.concatenate([[0], np.cumsum(chosen.steps)])
    joined = np.concatenate(actions).reshape(int(offsets[-1]), -1)
    recording = recording_file.Recording(offsets, chosen.seed, "actions", joined)
    more = _outcomes(chosen, played.last_states[numbers]) | {"numbers": numbers, "shares": shares}
    recording_file.write_blocks(path, recording, spec, **more, played=np.array(len(played)))


def _outcomes(rows: Attempts, last_states: np.ndarray) -> dict[str, np.ndarray]:
    """Return the values by which a replay is compared."""
    ended = {"terminated": rows.terminated, "truncated": rows.truncated}
    return {"return": rows.return_, **ended, "last_states": last_states}


def check_replay(path: str | os.PathLike, episodes: range, replayed: Trajectories) -> None:
    """Raise GoalreelError if these episodes of a selection were replayed differently."""
    rows = replayed.episodes
    found = _outcomes(rows, replayed.states[replayed.offsets[1:] - 1])
    expected = npz.read(path, recording_file.KIND, recording_file.VERSION, found)
    for name, values in found.items():
        pairs = zip(expected[name][episodes.start : episodes.stop], values, strict=True)
        for number, pair in zip(rows.reach, pairs, strict=True):
            if not np.array_equal(*np.array(pair, float), equal_nan=True):
                raise GoalreelError(
                    f"film.select: Episode {number} has a different {name.replace('_', ' ')} in a "
                    "replay. Make episodes depend only on their seed, or film all of them."
                )


def read_shares(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Return the numbers, the shares and the number of all episodes of a selection."""
    names = "numbers", "shares", "played"
    return npz.read(path, recording_file.KIND, recording_file.VERSION, names)
