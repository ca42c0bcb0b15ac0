"""Store a recording in blocks of rows, so that a shard reads only the blocks that it needs.

The file is a compressed .npz without objects:

    kind, version     "recording" and the version of this layout
    spec              JSON: how the file was made
    offsets, seeds    as in Recording
    numbers           (episodes,) int64: the numbers of the episodes in the tables
    columns           the kind of rows, "actions" or "states"
    actions_0, ...    the rows, in blocks of 65,536 (states_0, ... for states)

A selection of episodes that were played has `numbers` that are not consecutive, and more arrays
(see played_episodes).
"""

import os

import numpy as np

from goalreel.errors import GoalreelError, pluralize
from goalreel.files import npz
from goalreel.provenance.spec import Spec
from goalreel.simulation.recording_file import RecordedEpisode, Recording

VERSION = 4
KIND = "recording"
_ROWS = 1 << 16  # rows per block


def write_blocks(
    path: str | os.PathLike, recording: Recording, spec: Spec, **more: np.ndarray
) -> None:
    """Write a recording and more arrays; the bytes depend only on these and the spec."""
    arrays = npz.header(KIND, VERSION) | {"spec": np.array(spec.text)}
    arrays |= {"offsets": recording.offsets, "seeds": recording.seeds}
    arrays |= {"numbers": np.arange(len(recording)), "columns": np.array(recording.columns), **more}
    for block, first in enumerate(range(0, len(recording.rows), _ROWS)):
        arrays[f"{recording.columns}_{block}"] = recording.rows[first : first + _ROWS]
    npz.write(path, arrays)


def read_blocks(path: str | os.PathLike, episodes: range, label: str) -> list[RecordedEpisode]:
    """Return a range of a recording's episodes, reading only the blocks that hold them.

    Raises GoalreelError if the file is unusable, or the recording has fewer episodes. `label`, the
    option that names the recording with its value, is for messages.
    """
    index = npz.read(path, KIND, VERSION, ("offsets", "seeds", "numbers", "columns"))
    offsets, seeds, columns = index["offsets"], index["seeds"], str(index["columns"])
    if episodes.stop > len(seeds):
        raise GoalreelError(
            f"episodes: {label} has only {pluralize(len(seeds), 'episode')}, and {episodes.stop} "
            f"are needed. Set episodes={len(seeds)} or fewer."
        )
    first, end = int(offsets[episodes.start]), int(offsets[episodes.stop])
    blocks = range(first // _ROWS, (end - 1) // _ROWS + 1)
    parts = npz.read(path, KIND, VERSION, [f"{columns}_{block}" for block in blocks])
    rows = np.concatenate(list(parts.values()))[first - blocks.start * _ROWS :]
    recorded = []
    for place in episodes:
        episode_rows = rows[offsets[place] - first : offsets[place + 1] - first]
        number = int(index["numbers"][place])
        name = f"{label}, episode {number}"
        recorded.append(RecordedEpisode(name, number, seeds[place], **{columns: episode_rows}))
    return recorded
