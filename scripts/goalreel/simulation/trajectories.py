"""Read and write trajectory files, each of which holds the episodes of one shard.

docs/reference/results.md describes the arrays. The states of episode e are offsets[e] to
offsets[e + 1]. An episode has one action and one reward fewer than states, so those of episode e
start at offsets[e] - e. `np.load` reads the files without objects.
"""

import hashlib
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields

import numpy as np

from goalreel.errors import UnusableFileError
from goalreel.files import npz
from goalreel.provenance.spec import Spec, parse_spec

VERSION = 3
_KIND = "trajectories"
_STEPS = "offsets", "states", "actions", "rewards"
_SIGNAL = "signals_"
_EPISODE_COLUMNS = "reach", "attempt", "seed", "terminated", "truncated", "reached"
# An episode's states (steps + 1, ...), actions (steps, ...) and rewards (steps,).
Steps = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Attempts:
    """One row per simulated episode, sorted by reach and attempt: (attempts,) arrays."""

    reach: np.ndarray  # int64
    attempt: np.ndarray  # int64, from 0
    seed: np.ndarray  # int64, or uint64 for recorded episodes
    initial_position: np.ndarray  # float64, NaN if there is none
    steps: np.ndarray  # int64
    return_: np.ndarray  # float64, the sum of the rewards, added in order
    terminated: np.ndarray  # bool
    truncated: np.ndarray  # bool
    reached: np.ndarray  # bool
    info: np.ndarray  # a float64 field for each number of the last step's info["columns"]

    def take(self, rows: np.ndarray) -> "Attempts":
        """Return the rows that a boolean mask or indices select."""
        return Attempts(*(column[rows] for column in vars(self).values()))

    def pairs(self) -> list[tuple[int, int]]:
        """Return the reach and attempt of each row, a pair unique in the shard."""
        return list(zip(self.reach.tolist(), self.attempt.tolist(), strict=True))

    def row(self, index: int) -> dict[str, object]:
        """Return a row as plain Python values by the names of the columns in the tables."""
        row = {name.rstrip("_"): column[index].item() for name, column in vars(self).items()}
        return row | {"info": dict(zip(self.info.dtype.names, row["info"], strict=True))}


# A field cannot be named `return`, a Python keyword.
_ATTEMPT_COLUMNS = tuple(f"attempts_{field.name.rstrip('_')}" for field in fields(Attempts))
_SUMMARY = ("spec", "probe", "digest", "offsets", *_EPISODE_COLUMNS, *_ATTEMPT_COLUMNS)


def concatenate(parts: Iterable[Attempts]) -> Attempts:
    """Return the rows of all parts, in order."""
    columns = zip(*(vars(part).values() for part in parts), strict=True)
    return Attempts(*map(np.concatenate, columns))


@dataclass(frozen=True)
class Summary:
    """The part of a trajectory file that the tables and the film need, without states."""

    episodes: Attempts
    attempts: Attempts
    probe: str
    spec: Spec
    digest: str


@dataclass(frozen=True)
class Trajectories:
    """The content of a trajectory file. docs/reference/results.md lists shapes and dtypes."""

    offsets: np.ndarray
    states: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    episodes: Attempts  # the rows of the filmed episodes
    attempts: Attempts
    probe: str
    spec: Spec
    poses: np.ndarray | None = None  # None if the environment has none
    signals: Mapping[str, np.ndarray] = field(default_factory=dict)

    def digest(self) -> str:
        """Return the sha256 of the filmed seeds, offsets, states, actions and rewards."""
        hashed = hashlib.sha256()
        for array in (self.episodes.seed, self.offsets, self.states, self.actions, self.rewards):
            hashed.update(f"{array.dtype.str}{array.shape}".encode())
            hashed.update(np.ascontiguousarray(array).tobytes())
        return hashed.hexdigest()

    def __len__(self) -> int:
        """Return the number of filmed episodes."""
        return len(self.offsets) - 1

    def episode(self, index: int) -> Steps:
        """Return the steps of a filmed episode."""
        first, last = self.offsets[index], self.offsets[index + 1]
        steps = self.steps(index)
        return self.states[first:last], self.actions[steps], self.rewards[steps]

    def steps(self, index: int) -> slice:
        """Return the rows of an episode's steps in actions, rewards and signals."""
        return slice(self.offsets[index] - index, self.offsets[index + 1] - index - 1)


def first_difference(a: Steps, b: Steps) -> tuple[int, str] | None:
    """Return the first step at which two episodes differ in a bit, and the quantity that differs.

    A step is an action, the observation after it and its reward. The reset is step 0. None if the
    episodes are equal.
    """
    found = [(min(len(a[1]), len(b[1])) + 1, "ending")] if len(a[1]) != len(b[1]) else []
    for part, quantity in ((1, "action"), (0, "observation"), (2, "reward")):
        mine, other = a[part], b[part]
        common = min(len(mine), len(other))
        if mine.dtype != other.dtype or mine.shape[1:] != other.shape[1:]:
            return 0, quantity  # of different environments
        differs = _bytes_by_row(mine[:common]) != _bytes_by_row(other[:common])
        places = np.flatnonzero(differs.any(axis=1))[:1] + (part > 0)
        found += [(place, quantity) for place in places.tolist()]
    return min(found, key=lambda difference: difference[0], default=None)


def _bytes_by_row(array: np.ndarray) -> np.ndarray:
    """Return the bytes of each row, (rows, bytes) uint8."""
    width = array.dtype.itemsize * math.prod(array.shape[1:])
    return np.frombuffer(array.tobytes(), np.uint8).reshape(len(array), width)


def write_trajectories(path: str | os.PathLike, trajectories: Trajectories) -> None:
    """Write a trajectory file; the bytes depend only on the trajectories."""
    t = trajectories
    arrays = npz.header(_KIND, VERSION) | {"spec": np.array(t.spec.text)}
    arrays |= {"probe": np.array(t.probe), "digest": np.array(t.digest())}
    arrays |= {name: getattr(t, name) for name in _STEPS}
    arrays |= {"poses": t.poses} if t.poses is not None and t.poses.size else {}
    arrays |= {f"{_SIGNAL}{name}": array for name, array in t.signals.items()}
    arrays |= {name: getattr(t.episodes, name) for name in _EPISODE_COLUMNS}
    attempts = zip(_ATTEMPT_COLUMNS, vars(t.attempts).values(), strict=True)
    npz.write(path, arrays | dict(attempts))


def read_trajectories(path: str | os.PathLike) -> Trajectories:
    """Read a trajectory file. Raises GoalreelError, naming the file, if it cannot be used."""
    arrays = npz.read(path, _KIND, VERSION)
    signals = {n.removeprefix(_SIGNAL): a for n, a in arrays.items() if n.startswith(_SIGNAL)}
    more = {"poses": arrays.get("poses"), "signals": signals}
    return Trajectories(*map(arrays.get, _STEPS), **_rows(path, arrays), **more)


def read_summary(path: str | os.PathLike) -> Summary:
    """Read a trajectory file without its states, which is cheap even for many shards."""
    arrays = npz.read(path, _KIND, VERSION, _SUMMARY)
    return Summary(**_rows(path, arrays), digest=str(arrays["digest"]))


def _rows(path: str | os.PathLike, arrays: dict[str, np.ndarray]) -> dict[str, object]:
    """Return the fields of a Summary without the digest, by name."""
    columns = [arrays[name] for name in _ATTEMPT_COLUMNS]
    for group in (columns, [arrays[name] for name in _EPISODE_COLUMNS]):
        # npz.read verifies the checksum only when it reads the whole file.
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
