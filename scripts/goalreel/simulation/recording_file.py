"""A file of episodes that were recorded elsewhere: its columns, and how they are read.

CSV with a header, or .npz with an array for each column; a row is a step, or a state:

    episode           any number; an episode's rows follow each other, in the order of its steps.
                      Reach i is the file's i-th episode, counted from 0
    seed              of the episode: what `env.reset(seed=...)` was given
    action            the step's action; or action_0, action_1, ... where it is several numbers
                      (in .npz also one array `action` of shape (rows, numbers))
    env               the environment's id (optional; of the first row). No other plays it then. In
                      .npz it may be a single text

or, for the Mountain Cars, the states themselves, shown as they are, the reset state first:

    episode, and seed if it is known
    position, velocity
    reward            of the step that led to the state (optional; of the first row not used)
"""

import csv
import itertools
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from goalreel.errors import OptionError, did_you_mean
from goalreel.files import npz
from goalreel.files.damage import BROKEN

UNKNOWN_SEED = -1
_MOST_BYTES = 4 << 30  # of an .npz file, unpacked
_NAMES = "episode", "seed", "action", "position", "velocity", "reward"
_COLUMNS = "episode, seed, action (or action_0, action_1, ...); or episode, position, velocity"


class RecordedEpisode(NamedTuple):
    """An episode that is to be played or shown."""

    label: str  # the option that names its file, that option's value, and the episode's number
    number: int
    seed: np.integer  # UNKNOWN_SEED where the file has none
    actions: np.ndarray | None = None  # (steps, numbers), or
    states: np.ndarray | None = None  # (steps + 1, 2) float64
    rewards: np.ndarray | None = None  # (steps,) float64; with states a row each
    # What a dataset has to be compared with; (steps + 1, ...), or a mapping or tuple of such.
    observations: object = None
    terminated: bool | None = None
    truncated: bool | None = None


@dataclass(frozen=True)
class Recording:
    """Episodes, end to end: either actions, or states and perhaps rewards."""

    label: str  # the option that names it, and its value
    offsets: np.ndarray  # (episodes + 1,) int64, where each episode's rows start
    seeds: np.ndarray  # (episodes,) int64, or uint64; UNKNOWN_SEED where the file has none
    actions: np.ndarray | None  # (rows, numbers)
    states: np.ndarray | None  # (rows, 2) float64
    rewards: np.ndarray | None  # (rows,) float64

    def __len__(self) -> int:
        """Return the number of episodes."""
        return len(self.seeds)

    def episodes(self, first: int = 0) -> list[RecordedEpisode]:
        """Return the episodes; first: the number of the first of them."""
        columns, found = (self.actions, self.states, self.rewards), []
        rows = itertools.starmap(slice, itertools.pairwise(self.offsets.tolist()))
        for number, (seed, part) in enumerate(zip(self.seeds, rows, strict=True), first):
            own = (None if column is None else column[part] for column in columns)
            found.append(RecordedEpisode(f"{self.label}, episode {number}", number, seed, *own))
        return found


def read_recording(path: str) -> Recording:
    """Read a recording. Raises GoalreelError, naming file and row, if it is none."""
    names, columns = _read_npz(path) if Path(path).suffix == ".npz" else _read_csv(path)
    actions = [name for name in columns if name == "action" or name.startswith("action_")]
    states = [name for name in ("position", "velocity") if name in columns]
    if "episode" not in columns or bool(actions) == bool(states) or len(states) == 1:
        hints = (did_you_mean(name, _NAMES) for name in names if not _is_known(name))
        told = f"its columns are {', '.join(names) or 'none'}{next(filter(None, hints), '')}"
        raise _recording_error(path, f"{told}; allowed: {_COLUMNS}")
    numbers = [f"action_{i}" for i in range(len(actions))]
    if actions and actions != ["action"] and sorted(actions) != sorted(numbers):
        raise _recording_error(
            path, f"its action columns are {', '.join(actions)}; allowed: action_0, action_1, ..."
        )
    if actions and "seed" not in columns:
        raise _recording_error(
            path, "it has actions but no column seed, which is needed to replay them"
        )
    label, offsets = f"policy.file: {path}", _offsets(path, columns["episode"])
    seeds = _seeds(path, columns, offsets)
    if states:
        pair = np.stack([columns[name].astype(np.float64) for name in states], axis=1)
        return Recording(label, offsets, seeds, None, pair, columns.get("reward"))
    order = ["action"] if actions == ["action"] else numbers
    parts = [columns[name].reshape(len(columns["episode"]), -1) for name in order]
    return Recording(label, offsets, seeds, np.concatenate(parts, axis=1), None, None)


def check_env(path: str, env: str) -> None:
    """Raise GoalreelError if a recording says that it is of another environment than `env`.

    Only its beginning is read, and a file that cannot be read is left to `read_recording`.
    """
    try:
        if Path(path).suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                named = str(npz.read_array(archive, "env").flat[0])
        else:
            with Path(path).open(newline="", encoding="utf-8-sig") as text:
                named = next(csv.DictReader(text, skipinitialspace=True)).get("env") or ""
    except (OSError, StopIteration, csv.Error, *BROKEN):
        return
    if named.strip().rpartition(":")[2] not in ("", env.rpartition(":")[2]):
        raise OptionError(
            "policy.file",
            f"{path} was recorded in {named}, and env is {env}; type env={named}, or "
            "name a recording of this environment",
        )


def _recording_error(path: str, what: str) -> OptionError:
    return OptionError("policy.file", f"{path} is not a recording that can be played: {what}")


def _is_known(name: str) -> bool:
    return name in _NAMES or name.startswith("action_")


def _read_npz(path: str) -> tuple[list[str], dict[str, np.ndarray]]:
    """Return the names of all columns, and the columns."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
            if size > _MOST_BYTES:
                raise _recording_error(
                    path, f"it unpacks to {size:,} bytes; allowed: {_MOST_BYTES:,}"
                )
            columns = {
                name: npz.read_array(archive, name)
                for name in sorted(set(npz.names_in(archive)) - {"env"})
            }
    except (OSError, *BROKEN) as error:
        raise _recording_error(path, f"{type(error).__name__}: {str(error)[:200]}") from None
    lengths = {name: array.shape[:1] for name, array in columns.items()}
    if len(set(lengths.values())) > 1 or () in lengths.values():
        shapes = ", ".join(f"{name} {columns[name].shape}" for name in columns)
        raise _recording_error(path, f"its arrays differ in length: {shapes}")
    for name, array in columns.items():
        if array.dtype.kind not in "iufb" or (array.ndim > 1 and name != "action"):
            raise _recording_error(
                path, f"its array {name} is {array.dtype} of shape {array.shape}"
            )
    return list(columns), columns


def _read_csv(path: str) -> tuple[list[str], dict[str, np.ndarray]]:
    """Return the names of all columns, and those that are known."""
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as text:
            lines = [row for row in csv.reader(text) if row]
    except (OSError, ValueError, csv.Error) as error:  # ValueError: it is no text
        raise _recording_error(path, f"it is not a CSV file with a header ({error})") from None
    if not lines:
        raise _recording_error(path, "it is not a CSV file with a header (it is empty)")
    header, *rows = lines
    for number, row in enumerate(rows, 1):
        if len(row) != len(header):
            raise _recording_error(
                path,
                f"row {number} has {len(row)} fields and its header {len(header)} (by commas)",
            )
    names, columns = [name.strip() for name in header], {}
    for place, name in enumerate(names):
        if _is_known(name):
            columns[name] = _numbers(path, name, [row[place].strip() for row in rows])
    return names, columns


def _numbers(path: str, name: str, texts: list[str]) -> np.ndarray:
    """Return a column as integers where all are (a seed may be beyond 2**53), else as doubles."""
    for integers in (np.int64, np.uint64):  # the second for a seed from 2**63 on
        try:
            return np.array([int(text) for text in texts], integers)
        except (ValueError, OverflowError):
            continue
    numbers = np.empty(len(texts))
    for row, text in enumerate(texts):
        try:
            numbers[row] = float(text if text or name != "reward" else "nan")
        except ValueError:
            raise _recording_error(
                path, f"row {row + 1}, column {name}: {text!r} is not a number"
            ) from None
    return numbers


def _offsets(path: str, episode: np.ndarray) -> np.ndarray:
    """Return where the episodes start, from each row's episode."""
    if len(episode) == 0:
        raise _recording_error(path, "it has no rows")
    starts = np.flatnonzero(np.concatenate([[True], episode[1:] != episode[:-1]]))
    begun = np.sort(episode[starts])
    again = begun[1:][begun[1:] == begun[:-1]]
    if len(again):
        raise _recording_error(path, f"the rows of episode {again[0]} are not consecutive")
    return np.append(starts, len(episode)).astype(np.int64)


def _seeds(path: str, columns: Mapping[str, np.ndarray], offsets: np.ndarray) -> np.ndarray:
    if "seed" not in columns:
        return np.full(len(offsets) - 1, UNKNOWN_SEED)
    seed, starts = columns["seed"], offsets[:-1]
    # Beyond 2**53 a double is whole, but hardly the seed that was meant.
    limit = 2**64 if seed.dtype.kind in "iub" else 2**53
    sound = (seed == np.repeat(seed[starts], np.diff(offsets))) & (seed >= 0) & (seed < limit)
    if seed.dtype.kind == "f":
        sound &= seed == np.floor(seed)
    for row in np.flatnonzero(~sound)[:1].tolist():
        raise _recording_error(
            path,
            f"seed {seed[row]} in row {row + 1}; allowed: one whole number below 2**64 for each "
            "episode",
        )
    return seed[starts] if seed.dtype == np.uint64 else seed[starts].astype(np.int64)
