"""Read a file of episodes that were recorded elsewhere, and store it in blocks of rows.

docs/how-to/policies.md describes the file, a CSV or an .npz with one array per column. An .npz may
have one array `action` of shape (rows, numbers), and a single string `env`. `write_blocks` stores
the rows so that a shard reads only the blocks that it needs: actions_0, ... or states_0, ...
"""

import contextlib
import csv
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from goalreel.errors import GoalreelError, OptionError, pluralize, suggest
from goalreel.files import npz
from goalreel.files.damage import BROKEN, MAX_BYTES
from goalreel.provenance.spec import Spec

_KIND = "recording", 5  # and the version of the blocks
UNKNOWN_SEED = -1
_ROWS = 1 << 16  # rows per block
_MAX_LINE = 1 << 20  # characters of a CSV file, so that a file without line breaks fits in memory
_STATE = "position", "velocity"
_NAMES = "episode", "seed", "action", *_STATE, "reward"
_ALLOWED = "episode, seed, action (or action_0, action_1, ...), or episode, position, velocity"


class RecordedEpisode(NamedTuple):
    """A recorded episode, which has either actions or states."""

    label: str  # for messages: the option that names the file, its value, the episode's number
    number: int
    seed: np.integer  # UNKNOWN_SEED if the file has none
    actions: np.ndarray | None = None  # (steps, numbers)
    states: np.ndarray | None = None  # (steps + 1, 2) float64, or (steps + 1, 3) with rewards
    # Values that a replay must match; only a Minari dataset has them.
    rewards: np.ndarray | None = None  # (steps,) float64
    observations: object = None  # (steps + 1, ...), or a mapping or tuple of such arrays
    terminated: bool | None = None
    truncated: bool | None = None


@dataclass(frozen=True)
class Recording:
    """All episodes of a recording. Episode i has rows[offsets[i] : offsets[i + 1]]."""

    offsets: np.ndarray  # (episodes + 1,) int64
    seeds: np.ndarray  # (episodes,) int64 or uint64, UNKNOWN_SEED if the file has none
    columns: str  # "actions" or "states", the field of RecordedEpisode that the rows fill
    rows: np.ndarray  # (rows, numbers)

    def __len__(self) -> int:
        return len(self.seeds)


def read_recording(path: str) -> Recording:
    """Read a recording. Raises GoalreelError, naming file and row, if it is not valid."""
    try:
        names, columns = _read_npz(path) if Path(path).suffix == ".npz" else _read_csv(path)
        return _recording(names, columns)
    except (OSError, csv.Error, *BROKEN) as error:
        raise OptionError("policy.file", f"Cannot replay '{path}'. {str(error)[:400]}") from None


def _recording(names: list[str], columns: dict[str, np.ndarray]) -> Recording:
    """Return the recording that columns form. Raises ValueError, which tells all `names`."""
    actions = [name for name in columns if name == "action" or name.startswith("action_")]
    states = [name for name in _STATE if name in columns]
    if "episode" not in columns or bool(actions) == bool(states) or len(states) == 1:
        hints = (suggest(name, _NAMES) for name in names if not _is_known(name))
        found = f"Its columns are {', '.join(names) or 'none'}. {next(filter(None, hints), '')}"
        raise ValueError(f"{found.rstrip()}\n  needed: {_ALLOWED}")
    numbers = [f"action_{i}" for i in range(len(actions))]
    if actions != ["action"] and sorted(actions) != sorted(numbers):
        raise ValueError(
            f"Its action columns are {', '.join(actions)}\n  needed: action_0, action_1, ..."
        )
    if actions and "seed" not in columns:
        raise ValueError("It has actions but no column seed, which a replay needs.")
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
    """Raise GoalreelError if a recording names a different environment than `env`.

    Only the file's beginning is read. `read_recording` reports files that cannot be read.
    """
    try:
        if Path(path).suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                named = str(npz.read_array(archive, "env").flat[0])
        else:
            with Path(path).open(newline="", encoding="utf-8-sig") as text:
                pieces = iter(lambda: text.readline(_MAX_LINE), "")
                named = next(csv.DictReader(pieces, skipinitialspace=True)).get("env") or ""
    except (OSError, StopIteration, csv.Error, *BROKEN):
        return
    if named.strip().rpartition(":")[2] not in ("", env.rpartition(":")[2]):
        raise OptionError(
            "policy.file",
            f"'{path}' was recorded in '{named}', but env is '{env}'. Set env={named}, or use a "
            "recording of this environment.",
        )


def _is_known(name: str) -> bool:
    return name in _NAMES or name.startswith("action_")


def _read_npz(path: str) -> tuple[list[str], dict[str, np.ndarray]]:
    """Return the names of all columns, and the columns by name."""
    with zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
        if size > MAX_BYTES:
            raise ValueError(f"It unpacks to {size:,} bytes, and the limit is {MAX_BYTES:,}.")
        names = sorted(set(npz.names_in(archive)) - {"env"})
        columns = {name: npz.read_array(archive, name) for name in names}
    if len({array.shape[:1] for array in columns.values()} | {()}) > 2:
        shapes = ", ".join(f"{name} {columns[name].shape}" for name in columns)
        raise ValueError(f"Its arrays differ in length: {shapes}")
    for name, array in columns.items():
        if array.dtype.kind not in "iufb" or array.ndim not in (1, 1 + (name == "action")):
            raise ValueError(f"Its array {name} is {array.dtype} of shape {array.shape}.")
    return names, columns


def _read_csv(path: str) -> tuple[list[str], dict[str, np.ndarray]]:
    """Return the names of all columns, and the columns of known names."""
    with Path(path).open(newline="", encoding="utf-8-sig") as text:
        pieces = iter(lambda: text.readline(_MAX_LINE), "")
        lines = [row for row in csv.reader(pieces) if row]
    if not lines:
        raise ValueError("It is not a CSV file with a header: it is empty.")
    header, *rows = lines
    for n, row in enumerate(rows, 1):
        if len(row) != len(header):
            raise ValueError(f"Row {n} has {len(row)} fields, but the header has {len(header)}.")
    names = [name.strip() for name in header]
    texts = zip(*rows, strict=True) if rows else [()] * len(names)
    columns = zip(names, texts, strict=True)
    return names, {name: _numbers(name, column) for name, column in columns if _is_known(name)}


def _numbers(name: str, texts: Sequence[str]) -> np.ndarray:
    """Return a column as integers if all fields are (seeds may exceed 2**53), else as float64."""
    for integers in (np.int64, np.uint64):  # uint64 for seeds from 2**63 on
        with contextlib.suppress(ValueError, OverflowError):
            return np.array([int(text) for text in texts], integers)
    numbers = np.full(len(texts), np.nan)
    for row, text in enumerate(texts):
        try:
            if text.strip() or name != "reward":
                numbers[row] = float(text)
        except ValueError:
            raise ValueError(f"Row {row + 1}, column {name}: {text!r} is not a number.") from None
    return numbers


def _offsets(episode: np.ndarray) -> np.ndarray:
    """Return the offsets of the episodes, given the episode of each row."""
    if len(episode) == 0:
        raise ValueError("It has no rows.")
    starts = np.flatnonzero(np.concatenate([[True], episode[1:] != episode[:-1]]))
    numbers, counts = np.unique(episode[starts], return_counts=True)
    for episode_number in numbers[counts > 1][:1]:
        raise ValueError(f"The rows of episode {episode_number} are not consecutive.")
    return np.append(starts, len(episode)).astype(np.int64)


def _seeds(seed: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the seed of each episode, given the seed of each row."""
    starts = offsets[:-1]
    # A float beyond 2**53 is a whole number, but may be rounded.
    limit = 2**64 if seed.dtype.kind in "iub" else 2**53
    is_valid = (seed == np.repeat(seed[starts], np.diff(offsets))) & (seed >= 0) & (seed < limit)
    if seed.dtype.kind == "f":
        is_valid &= seed == np.floor(seed)
    for row in np.flatnonzero(~is_valid)[:1].tolist():
        raise ValueError(
            f"Row {row + 1} has seed {seed[row]} instead of one whole number below 2**64 per "
            "episode."
        )
    return seed[starts] if seed.dtype == np.uint64 else seed[starts].astype(np.int64)


def write_blocks(path: Path, recording: Recording, spec: Spec) -> None:
    """Write a recording; the bytes depend only on it and the spec."""
    arrays = npz.header(*_KIND) | {"spec": np.array(spec.text)}
    arrays |= {"offsets": recording.offsets, "seeds": recording.seeds}
    arrays["columns"] = np.array(recording.columns)
    for block, first in enumerate(range(0, len(recording.rows), _ROWS)):
        arrays[f"{recording.columns}_{block}"] = recording.rows[first : first + _ROWS]
    npz.write(path, arrays)


def read_blocks(path: Path, episodes: range, label: str) -> list[RecordedEpisode]:
    """Return a range of a recording's episodes, reading only the blocks that hold them.

    Raises GoalreelError if the file is unusable, or the recording has fewer episodes. `label`, the
    option that names the recording with its value, is for messages.
    """
    index = npz.read(path, *_KIND, ("offsets", "seeds", "columns"))
    offsets, seeds, columns = index["offsets"], index["seeds"], str(index["columns"])
    if episodes.stop > len(seeds):
        raise GoalreelError(
            f"episodes: {label} has only {pluralize(len(seeds), 'episode')}, and {episodes.stop} "
            f"are needed. Set episodes={len(seeds)} or fewer."
        )
    first, end = int(offsets[episodes.start]), int(offsets[episodes.stop])
    blocks = range(first // _ROWS, (end - 1) // _ROWS + 1)
    parts = npz.read(path, *_KIND, [f"{columns}_{block}" for block in blocks])
    rows = np.concatenate(list(parts.values()))[first - blocks.start * _ROWS :]
    recorded = []
    for place in episodes:
        episode_rows = rows[offsets[place] - first : offsets[place + 1] - first]
        name = f"{label}, episode {place}"
        recorded.append(RecordedEpisode(name, place, seeds[place], **{columns: episode_rows}))
    return recorded
