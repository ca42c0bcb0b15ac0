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

import contextlib
import csv
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from goalreel.errors import OptionError, suggest
from goalreel.files import npz
from goalreel.files.damage import BROKEN

UNKNOWN_SEED = -1
_MAX_BYTES = 4 << 30  # of an .npz file, unpacked
_STATE = "position", "velocity"
_NAMES = "episode", "seed", "action", *_STATE, "reward"
_ALLOWED = "episode, seed, action (or action_0, action_1, ...); or episode, position, velocity"


class RecordedEpisode(NamedTuple):
    """An episode that is to be played or shown."""

    label: str  # the option that names its file, that option's value, and the episode's number
    number: int
    seed: np.integer  # UNKNOWN_SEED where the file has none
    actions: np.ndarray | None = None  # (steps, numbers), or
    states: np.ndarray | None = None  # (steps + 1, 2) float64, or 3 of them, with a reward
    # What a dataset has to be compared with.
    rewards: np.ndarray | None = None  # (steps,) float64
    observations: object = None  # (steps + 1, ...), or a mapping or tuple of such
    terminated: bool | None = None
    truncated: bool | None = None


@dataclass(frozen=True)
class Recording:
    """Episodes, end to end."""

    offsets: np.ndarray  # (episodes + 1,) int64, where each episode's rows start
    seeds: np.ndarray  # (episodes,) int64, or uint64; UNKNOWN_SEED where the file has none
    columns: str  # "actions" or "states", the field of RecordedEpisode that its rows are
    rows: np.ndarray  # (rows, numbers)

    def __len__(self) -> int:
        """Return the number of episodes."""
        return len(self.seeds)


def read_recording(path: str) -> Recording:
    """Read a recording. Raises GoalreelError, naming file and row, if it is none."""
    try:
        names, columns = _read_npz(path) if Path(path).suffix == ".npz" else _read_csv(path)
        return _recording(names, columns)
    except (OSError, csv.Error, *BROKEN) as error:
        raise OptionError(
            "policy.file", f"{path} is not a recording that can be played: {str(error)[:400]}"
        ) from None


def _recording(names: list[str], columns: dict[str, np.ndarray]) -> Recording:
    """Return a recording of its columns; names: those of all. Raises ValueError if it is none."""
    actions = [name for name in columns if name == "action" or name.startswith("action_")]
    states = [name for name in _STATE if name in columns]
    if "episode" not in columns or bool(actions) == bool(states) or len(states) == 1:
        hints = (suggest(name, _NAMES) for name in names if not _is_known(name))
        hint = next(filter(None, hints), f"Allowed: {_ALLOWED}")
        raise ValueError(f"its columns are {', '.join(names) or 'none'}. {hint}")
    numbers = [f"action_{i}" for i in range(len(actions))]
    if actions != ["action"] and sorted(actions) != sorted(numbers):
        raise ValueError(
            f"its action columns are {', '.join(actions)}; allowed: action_0, action_1, ..."
        )
    if actions and "seed" not in columns:
        raise ValueError("it has actions but no column seed, which is needed to replay them")
    offsets = _offsets(columns["episode"])
    seeds = np.full(len(offsets) - 1, UNKNOWN_SEED)
    if "seed" in columns:
        seeds = _seeds(columns["seed"], offsets)
    if states:
        order = [name for name in (*_STATE, "reward") if name in columns]
        rows = np.stack([columns[name].astype(np.float64) for name in order], axis=1)
        return Recording(offsets, seeds, "states", rows)
    order = ["action"] if actions == ["action"] else numbers
    parts = [columns[name].reshape(len(columns["episode"]), -1) for name in order]
    return Recording(offsets, seeds, "actions", np.concatenate(parts, axis=1))


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


def _is_known(name: str) -> bool:
    return name in _NAMES or name.startswith("action_")


def _read_npz(path: str) -> tuple[list[str], dict[str, np.ndarray]]:
    """Return the names of all columns, and the columns."""
    with zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
        if size > _MAX_BYTES:
            raise ValueError(f"it unpacks to {size:,} bytes; allowed: {_MAX_BYTES:,}")
        names = sorted(set(npz.names_in(archive)) - {"env"})
        columns = {name: npz.read_array(archive, name) for name in names}
    if len({array.shape[:1] for array in columns.values()} | {()}) > 2:
        shapes = ", ".join(f"{name} {columns[name].shape}" for name in columns)
        raise ValueError(f"its arrays differ in length: {shapes}")
    for name, array in columns.items():
        if array.dtype.kind not in "iufb" or array.ndim not in (1, 1 + (name == "action")):
            raise ValueError(f"its array {name} is {array.dtype} of shape {array.shape}")
    return names, columns


def _read_csv(path: str) -> tuple[list[str], dict[str, np.ndarray]]:
    """Return the names of all columns, and those that are known."""
    with Path(path).open(newline="", encoding="utf-8-sig") as text:
        lines = [row for row in csv.reader(text) if row]
    if not lines:
        raise ValueError("it is not a CSV file with a header (it is empty)")
    header, *rows = lines
    for number, row in enumerate(rows, 1):
        if len(row) != len(header):
            raise ValueError(
                f"row {number} has {len(row)} fields and its header {len(header)} (by commas)"
            )
    names = [name.strip() for name in header]
    texts = zip(*rows, strict=True) if rows else [()] * len(names)
    columns = zip(names, texts, strict=True)
    return names, {name: _numbers(name, column) for name, column in columns if _is_known(name)}


def _numbers(name: str, texts: Sequence[str]) -> np.ndarray:
    """Return a column as integers where all are (a seed may be beyond 2**53), else as doubles."""
    for integers in (np.int64, np.uint64):  # the second for a seed from 2**63 on
        with contextlib.suppress(ValueError, OverflowError):
            return np.array([int(text) for text in texts], integers)
    numbers = np.full(len(texts), np.nan)
    for row, text in enumerate(texts):
        try:
            if text.strip() or name != "reward":
                numbers[row] = float(text)
        except ValueError:
            raise ValueError(f"row {row + 1}, column {name}: {text!r} is not a number") from None
    return numbers


def _offsets(episode: np.ndarray) -> np.ndarray:
    """Return where the episodes start, from each row's episode."""
    if len(episode) == 0:
        raise ValueError("it has no rows")
    starts = np.flatnonzero(np.concatenate([[True], episode[1:] != episode[:-1]]))
    numbers, counts = np.unique(episode[starts], return_counts=True)
    for again in numbers[counts > 1][:1]:
        raise ValueError(f"the rows of episode {again} are not consecutive")
    return np.append(starts, len(episode)).astype(np.int64)


def _seeds(seed: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return each episode's seed, from each row's."""
    starts = offsets[:-1]
    # Beyond 2**53 a double is whole, but hardly the seed that was meant.
    limit = 2**64 if seed.dtype.kind in "iub" else 2**53
    sound = (seed == np.repeat(seed[starts], np.diff(offsets))) & (seed >= 0) & (seed < limit)
    if seed.dtype.kind == "f":
        sound &= seed == np.floor(seed)
    for row in np.flatnonzero(~sound)[:1].tolist():
        raise ValueError(
            f"seed {seed[row]} in row {row + 1}; allowed: one whole number below 2**64 for each "
            "episode"
        )
    return seed[starts] if seed.dtype == np.uint64 else seed[starts].astype(np.int64)
