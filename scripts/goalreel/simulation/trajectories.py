"""The trajectory file: the episodes of one shard, and how it is written and read.

It is a compressed .npz without objects (`np.load(path, allow_pickle=False)` reads it):

    kind, version     "trajectories" and the version of this layout
    spec              JSON: how the file was made
    probe             hash of what the machine computes of fixed samples (physics.probe)
    digest            hash of the filmed seeds, offsets, states, actions and rewards; frames and
                      segments that are made of them carry it on, so that a film can tell whose
                      they are
    offsets           (episodes + 1,) int64: episode e's states are rows offsets[e]:offsets[e + 1]
    states            (states, 2) float64: position and velocity, each episode's reset state first;
                      of another environment (states, width): CartPole's, Acrobot's and
                      Pendulum's own, without wrappers, else its observations' numbers, where
                      they are a Box of up to 64, else width 0
    actions           (steps,) int8, or float32 in MountainCarContinuous-v0; of another environment
                      (steps,) int64 where an action is one whole number, else (steps, numbers)
    rewards           (steps,) float64   an episode has one action and one reward fewer than states:
                      theirs start at offsets - arange(episodes + 1)
    reach, attempt, seed, terminated, truncated, reached
                      (episodes,): the filmed episodes, in film order
    attempts_*        (attempts,): reach, attempt, seed, initial_position (NaN where there is none),
                      steps, return, terminated, truncated, reached of every episode simulated, by
                      reach and attempt
"""

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np

from goalreel.errors import UnusableFileError
from goalreel.files import npz
from goalreel.provenance.spec import Spec, parse_spec

VERSION = 2
_KIND = "trajectories"
_STEPS = "offsets", "states", "actions", "rewards"
_EPISODE_COLUMNS = "reach", "attempt", "seed", "terminated", "truncated", "reached"


@dataclass(frozen=True)
class Attempts:
    """One row per episode simulated, by reach and attempt: (attempts,) arrays."""

    reach: np.ndarray  # int64
    attempt: np.ndarray  # int64, from 0
    seed: np.ndarray  # int64, or uint64 of recorded episodes
    initial_position: np.ndarray  # float64, NaN where there is none
    steps: np.ndarray  # int64
    return_: np.ndarray  # float64, the rewards summed in order
    terminated: np.ndarray  # bool
    truncated: np.ndarray  # bool
    reached: np.ndarray  # bool

    def take(self, rows: np.ndarray) -> "Attempts":
        """Return the chosen rows (a boolean mask or indices)."""
        return Attempts(*(column[rows] for column in vars(self).values()))

    def pairs(self) -> list[tuple[int, int]]:
        """Return each row's reach and attempt, which no other row of a shard has."""
        return list(zip(self.reach.tolist(), self.attempt.tolist(), strict=True))

    def row(self, index: int) -> dict[str, object]:
        """Return one row as plain Python values, by the columns' names in the tables."""
        return {name.rstrip("_"): column[index].item() for name, column in vars(self).items()}


# `return` is a word of Python's.
_ATTEMPT_COLUMNS = tuple(f"attempts_{field.name.rstrip('_')}" for field in fields(Attempts))
_SUMMARY = ("spec", "probe", "digest", "offsets", *_EPISODE_COLUMNS, *_ATTEMPT_COLUMNS)


def concatenate(parts: Iterable[Attempts]) -> Attempts:
    """Return all rows, end to end."""
    columns = zip(*(vars(part).values() for part in parts), strict=True)
    return Attempts(*map(np.concatenate, columns))


@dataclass(frozen=True)
class Summary:
    """What the tables and the film need of a trajectory file; its states are not read."""

    episodes: Attempts
    attempts: Attempts
    probe: str
    spec: Spec
    digest: str


@dataclass(frozen=True)
class Trajectories:
    """What a trajectory file holds; the module's docstring has the arrays' shapes and dtypes."""

    offsets: np.ndarray
    states: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    episodes: Attempts  # the rows of the filmed episodes
    attempts: Attempts
    probe: str
    spec: Spec

    def digest(self) -> str:
        """Return a sha256, in hexadecimal, of what is filmed: seeds, offsets, states, ..."""
        hashed = hashlib.sha256()
        for array in (self.episodes.seed, self.offsets, self.states, self.actions, self.rewards):
            hashed.update(f"{array.dtype.str}{array.shape}".encode())
            hashed.update(np.ascontiguousarray(array).tobytes())
        return hashed.hexdigest()

    def __len__(self) -> int:
        """Return the number of filmed episodes."""
        return len(self.offsets) - 1

    def episode(self, index: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return a filmed episode's states (steps + 1, ...), actions (steps, ...) and rewards."""
        first, last = self.offsets[index], self.offsets[index + 1]
        steps = slice(first - index, last - index - 1)
        return self.states[first:last], self.actions[steps], self.rewards[steps]


def write_trajectories(path: str | os.PathLike, trajectories: Trajectories) -> None:
    """Write a trajectory file; the same trajectories give the same bytes."""
    t = trajectories
    arrays = npz.header(_KIND, VERSION) | {"spec": np.array(t.spec.text)}
    arrays |= {"probe": np.array(t.probe), "digest": np.array(t.digest())}
    arrays |= {name: getattr(t, name) for name in _STEPS}
    arrays |= {name: getattr(t.episodes, name) for name in _EPISODE_COLUMNS}
    attempts = zip(_ATTEMPT_COLUMNS, vars(t.attempts).values(), strict=True)
    npz.write(path, arrays | dict(attempts))


def read_trajectories(path: str | os.PathLike) -> Trajectories:
    """Read a trajectory file. Raises GoalreelError, naming the file, if it cannot be used."""
    arrays = npz.read(path, _KIND, VERSION)
    return Trajectories(*map(arrays.get, _STEPS), **_rows(path, arrays))


def read_summary(path: str | os.PathLike) -> Summary:
    """Read a trajectory file without its states, so that many shards stay cheap.

    Raises GoalreelError as `read_trajectories`.
    """
    arrays = npz.read(path, _KIND, VERSION, _SUMMARY)
    return Summary(**_rows(path, arrays), digest=str(arrays["digest"]))


def _rows(path: str | os.PathLike, arrays: dict[str, np.ndarray]) -> dict[str, object]:
    """Return the rows of the filmed episodes and of all attempts, and how they were made."""
    columns, filmed = (
        [arrays[name] for name in names] for names in (_ATTEMPT_COLUMNS, _EPISODE_COLUMNS)
    )
    for group in (columns, filmed):
        # Of a part of the file no checksum is verified.
        if {column.shape for column in group} != {(group[0].size,)}:
            raise UnusableFileError(path, "its columns differ in length")
    attempts = Attempts(*columns)
    pairs = set(zip(arrays["reach"].tolist(), arrays["attempt"].tolist(), strict=True))
    is_filmed = np.array([pair in pairs for pair in attempts.pairs()], bool)
    return {
        "episodes": attempts.take(is_filmed),
        "attempts": attempts,
        "probe": str(arrays["probe"]),
        "spec": parse_spec(str(arrays["spec"]), path),
    }
