"""Play episodes without frames, and store those that are chosen for the film.

A file has a row for each episode. docs/reference/results.md describes the columns.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from goalreel.cli import ProgressLog
from goalreel.environments.environment import Environment
from goalreel.environments.seeding import episode_seeds
from goalreel.files import npz
from goalreel.policies.policy import Policy
from goalreel.provenance.spec import Spec
from goalreel.simulation.episodes import Episode, simulate_episodes
from goalreel.simulation.reaches import to_batch
from goalreel.simulation.trajectories import Attempts, concatenate

_PLAYED, _SELECTION = ("played", 2), ("selection", 1)  # kinds and versions
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
) -> PlayedEpisodes:
    """Play one episode for each number.

    Calls `check` with the first episode and the seconds that its batch took. The other arguments
    are those of `simulate_reaches`.
    """
    policy.check(environment)
    log, began = ProgressLog(), time.monotonic()
    rows, last_states, steps = [], [], 0
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
        steps += sum(len(episode.actions) for episode in episodes)
        log.update(len(last_states), steps)
    return PlayedEpisodes(concatenate(rows), np.array(last_states))


def write_played(path: Path, played: PlayedEpisodes, spec: Spec) -> None:
    """Write a played file; the bytes depend only on the arguments."""
    arrays = npz.header(*_PLAYED) | {"spec": np.array(spec.text), **_columns(played.rows)}
    npz.write(path, arrays | {"last_states": played.last_states})


def read_played(paths: Sequence[Path]) -> PlayedEpisodes:
    """Read the episodes of played files."""
    parts = [npz.read(path, *_PLAYED) for path in paths]
    rows = concatenate(map(_rows, parts))
    return PlayedEpisodes(rows, np.concatenate([part["last_states"] for part in parts]))


@dataclass(frozen=True)
class Selection:
    """Episodes that were chosen from all played ones."""

    rows: Attempts
    shares: np.ndarray  # (episodes, 3) float64: the share that is as rare, and its 95% interval
    played: int  # the number of all episodes


def write_selection(path: Path, selection: Selection, spec: Spec) -> None:
    """Write a selection. The bytes depend only on the arguments."""
    arrays = npz.header(*_SELECTION) | {"spec": np.array(spec.text), **_columns(selection.rows)}
    shares = {"shares": selection.shares, "played": np.array(selection.played)}
    npz.write(path, arrays | shares)


def read_selection(path: Path) -> Selection:
    """Read a selection. Raises GoalreelError, naming the file, if it cannot be used."""
    arrays = npz.read(path, *_SELECTION)
    return Selection(_rows(arrays), arrays["shares"], int(arrays["played"]))


def _columns(rows: Attempts) -> dict[str, np.ndarray]:
    return dict(zip(_COLUMNS, vars(rows).values(), strict=True))


def _rows(arrays: Mapping[str, np.ndarray]) -> Attempts:
    return Attempts(*map(arrays.get, _COLUMNS))
